//! The peers as their documentation puts them together, over any client, so that the benches compare like with like.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Response};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff as ReqwestBackoff;
use seatbelt::breaker::Breaker;
use seatbelt::timeout::Timeout;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;
use tokio::time::Sleep;
use tower::limit::ConcurrencyLimitLayer;
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower::util::rng::Rng;
use tower::{BoxError, Service, ServiceBuilder};
use tower_resilience::bulkhead::BulkheadLayer;
use tower_resilience::circuitbreaker::{
    CircuitBreakerConfigError, CircuitBreakerError, CircuitBreakerLayer, FailureClassifier,
};
use tower_resilience::retry::{RetryBudget, RetryLayer as ResilienceRetryLayer};
use tower_resilience::timelimiter::TimeLimiterLayer;

/// Calls in flight that every stack with a limit lets through: more than any bench has.
pub const CONCURRENCY: usize = 1_000;

/// How long an attempt may take where a stack has a timeout: abate's default.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Attempts per call of tower's `Retry`, which has no default, the first included: as many as abate's.
const TOWER_ATTEMPTS: u32 = 3;

/// Retries of reqwest-retry: as many as its documentation shows.
const REQWEST_RETRIES: u32 = 3;

/// What every stack here is laid over, and is itself: an HTTP client as tower sees it.
pub trait HttpClient<B>:
    Service<
        Request<B>,
        Response = Response<Self::Body>,
        Error: Into<BoxError> + fmt::Debug + fmt::Display + Send + Sync + 'static,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// The body of its responses.
    type Body: Send + 'static;
}

impl<S, B, R> HttpClient<B> for S
where
    S: Service<Request<B>, Response = Response<R>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Error: Into<BoxError> + fmt::Debug + fmt::Display + Send + Sync + 'static,
    R: Send + 'static,
{
    type Body = R;
}

/// What every peer is told to take for a failure: an error, or a status from 500.
pub fn failed<R, E>(result: &Result<Response<R>, E>) -> bool {
    !matches!(result, Ok(response) if !response.status().is_server_error())
}

/// tower's three layers: retry with budget, concurrency limit, timeout.
///
/// # Errors
///
/// If tower refuses the backoff.
pub fn tower_three<S, B>(client: S) -> Result<impl HttpClient<B, Body = S::Body>, BoxError>
where
    S: HttpClient<B>,
    B: Clone + Send + Sync + 'static,
{
    Ok(ServiceBuilder::new()
        .layer(RetryLayer::new(TowerPolicy::new(1)?))
        .layer(ConcurrencyLimitLayer::new(CONCURRENCY))
        .layer(TimeoutLayer::new(ATTEMPT_TIMEOUT))
        .service(client))
}

/// tower's own parts, put together as its documentation does: its budget and its backoff, both with their defaults.
#[derive(Clone, Debug)]
pub struct TowerPolicy {
    budget: Arc<TpsBudget>,
    backoff: ExponentialBackoff<Jitter>,
    retries_left: u32,
}

impl TowerPolicy {
    /// A policy with a budget of its own, and the same jitter in every run.
    ///
    /// # Errors
    ///
    /// If tower refuses the backoff.
    pub fn new(seed: u64) -> Result<Self, BoxError> {
        // The figures of `ExponentialBackoffMaker::default()`, whose generator takes no seed.
        let (min, max) = (Duration::from_millis(50), Duration::from_millis(u64::MAX));
        let jitter = Jitter(Arc::new(AtomicU64::new(seed)));
        let backoff = ExponentialBackoffMaker::new(min, max, 0.99, jitter)?.make_backoff();
        Ok(Self { budget: Arc::default(), backoff, retries_left: TOWER_ATTEMPTS - 1 })
    }
}

impl<B: Clone, R, E> Policy<Request<B>, Response<R>, E> for TowerPolicy {
    type Future = Sleep;

    fn retry(&mut self, _: &mut Request<B>, result: &mut Result<Response<R>, E>) -> Option<Sleep> {
        if !failed(result) {
            self.budget.deposit();
            return None;
        }
        self.retries_left = self.retries_left.checked_sub(1)?;
        self.budget.withdraw().then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}

/// One generator for all calls: tower clones a policy's generator for every call, and a copied state would give all
/// calls the same jitter.
#[derive(Clone, Debug)]
struct Jitter(Arc<AtomicU64>);

impl Rng for Jitter {
    fn next_u64(&mut self) -> u64 {
        // Relaxed: each draw needs a value of its own, not an order.
        splitmix(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The `n`-th number of splitmix64 from the seed 0.
#[must_use]
pub fn splitmix(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// tower-resilience's retry over its breaker, with their defaults; `budget` is none unless one is given.
///
/// # Errors
///
/// If tower-resilience refuses the breaker.
pub fn tower_resilience_two<S, B>(
    client: S,
    budget: Option<Arc<dyn RetryBudget>>,
) -> Result<impl HttpClient<B, Body = S::Body>, BoxError>
where
    S: HttpClient<B>,
    B: Clone + Send + Sync + 'static,
{
    Ok(ServiceBuilder::new()
        .layer(resilience_retry(budget))
        .layer(resilience_breaker::<S::Body, S::Error>()?)
        .service(client))
}

/// tower-resilience's four layers: retry, circuit breaker, bulkhead, time limiter.
///
/// # Errors
///
/// If tower-resilience refuses the breaker or the bulkhead.
pub fn tower_resilience_four<S, B>(
    client: S,
) -> Result<impl HttpClient<B, Body = S::Body>, BoxError>
where
    S: HttpClient<B>,
    B: Clone + Send + Sync + 'static,
{
    Ok(ServiceBuilder::new()
        .layer(resilience_retry(None))
        .layer(resilience_breaker()?)
        .layer(BulkheadLayer::builder().max_concurrent_calls(CONCURRENCY).build()?)
        .layer(TimeLimiterLayer::builder().timeout_duration(ATTEMPT_TIMEOUT).build())
        .service(client))
}

/// Does not retry what the breaker refused: so its documentation recommends.
fn resilience_retry<B, R, E>(
    budget: Option<Arc<dyn RetryBudget>>,
) -> ResilienceRetryLayer<Request<B>, Response<R>, CircuitBreakerError<E>> {
    let retry = ResilienceRetryLayer::exponential_backoff()
        .retry_on(|error: &CircuitBreakerError<E>| !error.is_circuit_open())
        .retry_on_response(|response: &Response<R>| response.status().is_server_error());
    match budget {
        Some(budget) => retry.budget(budget).build(),
        None => retry.build(),
    }
}

fn resilience_breaker<R, E>()
-> Result<CircuitBreakerLayer<impl FailureClassifier<Response<R>, E>>, CircuitBreakerConfigError>
where
    R: 'static,
    E: 'static,
{
    CircuitBreakerLayer::builder()
        .failure_classifier(|result: &Result<Response<R>, E>| failed(result))
        .build()
}

/// seatbelt's retry alone, with its defaults.
pub fn seatbelt_one<S, B>(client: S, clock: &Clock) -> impl HttpClient<B, Body = S::Body>
where
    S: HttpClient<B>,
    B: Clone + Send + Sync + 'static,
{
    let context = ResilienceContext::new(clock);
    ServiceBuilder::new()
        .layer(
            seatbelt::retry::Retry::layer("retry", &context)
                .clone_input()
                .recovery_with(|result, _| recovery(result)),
        )
        .service(client)
}

/// seatbelt's three layers, with their defaults: retry, breaker, timeout. It has no budget and no limit.
pub fn seatbelt_three<S, B>(client: S, clock: &Clock) -> impl HttpClient<B, Body = S::Body>
where
    S: HttpClient<B>,
    B: Clone + Send + Sync + 'static,
{
    let context = ResilienceContext::new(clock);
    ServiceBuilder::new()
        .layer(
            seatbelt::retry::Retry::layer("retry", &context)
                .clone_input()
                .recovery_with(|result, _| recovery(result)),
        )
        .layer(
            Breaker::layer("breaker", &context)
                .recovery_with(|result, _| recovery(result))
                .rejected_input_error(|_, _| Refused::Open),
        )
        .layer(
            Timeout::layer("timeout", &context)
                .timeout(ATTEMPT_TIMEOUT)
                .timeout_error(|_| Refused::Late),
        )
        .map_err(|error: S::Error| Refused::Client(error.into()))
        .service(client)
}

fn recovery<R, E>(result: &Result<Response<R>, E>) -> RecoveryInfo {
    if failed(result) { RecoveryInfo::retry() } else { RecoveryInfo::never() }
}

/// What seatbelt's layers answer with when they have no response: they want to be told.
#[derive(Debug)]
enum Refused {
    Open,
    Late,
    Client(BoxError),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("the breaker is open"),
            Self::Late => f.write_str("the attempt took too long"),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl Error for Refused {}

/// reqwest-retry as its documentation shows it: exponential backoff, three retries.
#[must_use]
pub fn reqwest_retry(client: reqwest::Client) -> ClientBuilder {
    let backoff = ReqwestBackoff::builder().build_with_max_retries(REQWEST_RETRIES);
    ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(backoff))
}
