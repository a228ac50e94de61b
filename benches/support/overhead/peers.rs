use std::future::{Ready, ready};
use std::sync::Arc;

use abate::BoxError;
use http::Request;
use tower::limit::ConcurrencyLimitLayer;
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower::{Layer, Service, ServiceBuilder};
use tower_resilience::bulkhead::{BulkheadLayer, BulkheadServiceError};
use tower_resilience::circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};
use tower_resilience::timelimiter::{TimeLimiterError, TimeLimiterLayer};

use super::client::{Answer, Call, Client, Failed};
use super::subjects::{LIMIT, LONG};
use crate::peers::failed;

/// A service for these benches.
pub(super) trait Peer: Service<Call, Response = Answer> + Clone + Send + 'static {}

impl<S: Service<Call, Response = Answer> + Clone + Send + 'static> Peer for S {}

/// tower's own, with the policy that its documentation suggests: it keeps a clone of the request.
pub(super) fn tower(client: Client) -> impl Peer {
    let budget = match client {
        // Enough for every call.
        Client::FailsEverySecond => TpsBudget::new(LONG, 1_000_000, 1.0),
        _ => TpsBudget::default(),
    };
    ServiceBuilder::new()
        .layer(RetryLayer::new(Retries { budget: Arc::new(budget), left: 2 }))
        .layer(ConcurrencyLimitLayer::new(LIMIT))
        .layer(TimeoutLayer::new(LONG))
        .service(client)
}

#[derive(Clone)]
struct Retries {
    budget: Arc<TpsBudget>,
    left: u32,
}

impl<E> Policy<Call, Answer, E> for Retries {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut Call, result: &mut Result<Answer, E>) -> Option<Ready<()>> {
        if !failed(result) {
            self.budget.deposit();
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        self.budget.withdraw().then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Call) -> Option<Call> {
        let mut copy = Request::new(request.body().clone());
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        copy.headers_mut().clone_from(request.headers());
        Some(copy)
    }
}

type Limited = BulkheadServiceError<TimeLimiterError<Failed>>;

pub(super) fn tower_resilience(client: Client) -> Result<impl Peer, BoxError> {
    let retry =
        tower_resilience::retry::RetryLayer::<Call, Answer, CircuitBreakerError<Limited>>::builder(
        )
        .max_attempts(3)
        .retry_on_response(|answer| answer.status().is_server_error())
        .build();
    let breaker = CircuitBreakerLayer::builder()
        .failure_classifier(|result: &Result<Answer, Limited>| failed(result))
        .build()?;
    let bulkhead = BulkheadLayer::builder().max_concurrent_calls(LIMIT).build()?;
    let timeout = TimeLimiterLayer::builder().timeout_duration(LONG).build();
    Ok(retry.layer(breaker.layer(bulkhead.layer(timeout.layer(client)))))
}

pub(super) fn seatbelt(client: Client) -> impl Peer {
    use seatbelt::{RecoveryInfo, ResilienceContext, breaker, retry, timeout};

    fn recovery(result: &Result<Answer, Failed>) -> RecoveryInfo {
        if failed(result) { RecoveryInfo::retry() } else { RecoveryInfo::never() }
    }
    let context = ResilienceContext::new(tick::Clock::new_tokio());
    ServiceBuilder::new()
        .layer(
            retry::Retry::layer("retry", &context)
                .clone_input()
                .recovery_with(|result, _| recovery(result)),
        )
        .layer(
            breaker::Breaker::layer("breaker", &context)
                .recovery_with(|result, _| recovery(result))
                .rejected_input_error(|_, _| Failed),
        )
        .layer(timeout::Timeout::layer("timeout", &context).timeout(LONG).timeout_error(|_| Failed))
        .service(client)
}
