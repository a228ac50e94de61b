//! What clones of a service or of a layer share, and what may be shared with them.

use std::time::Duration;

use abate::grpc::GrpcStatusLayer;
use abate::{
    Attempt, AttemptTimeoutLayer, BreakerState, BufferedResponseLayer, CircuitBreakerLayer,
    ConcurrencyLimitLayer, CooldownLayer, DeadlineLayer, Error, ErrorKind, IdempotencyKeyLayer,
    Jitter, Policy, Report, RetryAfterLayer, RetryBudgetLayer, RetryLayer, Stack,
};
use abate_tests::plan::{Answer, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, telling};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use tokio::time::{Instant, advance};
use tower::{Layer, Service, ServiceExt};

type Body = Full<Bytes>;

/// What is long for a test, and short for a cooldown.
const LONG: Duration = Duration::from_secs(1);

fn request(method: Method) -> Request<Body> {
    let mut request = Request::new(Body::default());
    *request.method_mut() = method;
    request
}

/// Four services that are one: two of a layer, one of its clone, and a clone of the last.
fn family<L, I, S>(layer: &L, inner: &I) -> [S; 4]
where
    L: Layer<I, Service = S> + Clone,
    I: Clone,
    S: Clone,
{
    let of_clone = layer.clone().layer(inner.clone());
    [layer.layer(inner.clone()), layer.layer(inner.clone()), of_clone.clone(), of_clone]
}

pub(crate) async fn relayering(kind: Kind) {
    let policy = Policy::default();
    match kind {
        Kind::Retry => one_budget(|policy, probe| family(&RetryLayer::new(policy), probe)).await,
        Kind::CircuitBreaker => {
            let (layer, probe) = (CircuitBreakerLayer::new(policy), failing());
            one_breaker(family(&layer, &probe), &probe).await;
            assert_eq!(layer.clone().handle().state(), BreakerState::Open);
        }
        Kind::ConcurrencyLimit => {
            let layer = ConcurrencyLimitLayer::from_policy(limit());
            one_limit(family(&layer, &holding())).await;
        }
        Kind::RetryBudget => one_stock().await,
        Kind::Cooldown => one_cooldown().await,
        Kind::Stack => {
            one_limit(family(&Stack::new(limit()), &holding())).await;
            one_budget(|policy, probe| family(&Stack::new(policy), probe)).await;
            let (stack, probe) = (Stack::new(policy), failing());
            one_breaker(family(&stack, &probe), &probe).await;
            assert_eq!(stack.clone().breaker().state(), BreakerState::Open);
        }
        Kind::RetryAfter => nothing_shared(RetryAfterLayer::new(), None).await,
        Kind::IdempotencyKey => {
            nothing_shared(IdempotencyKeyLayer::new().with_rule(|_| true), None).await;
        }
        Kind::BufferedResponse => nothing_shared(BufferedResponseLayer::default(), None).await,
        Kind::GrpcStatus => nothing_shared(GrpcStatusLayer::new(), None).await,
        Kind::AttemptTimeout => {
            let kind = Some(ErrorKind::AttemptTimeout);
            nothing_shared(AttemptTimeoutLayer::new(LONG), kind).await;
        }
        Kind::Deadline => {
            let kind = Some(ErrorKind::Deadline);
            nothing_shared(DeadlineLayer::new(LONG), kind).await;
        }
    }
}

/// An answer whose body keeps its permit.
fn holding() -> Probe {
    Probe::answering([Answer::status(200).with_chunks(1, When::Never)])
}

fn failing() -> Probe {
    Probe::answering([Answer::status(503)])
}

fn limit() -> Policy {
    let policy = Policy::builder().with_concurrency(1).with_concurrency_wait(Duration::ZERO);
    policy.build().unwrap()
}

async fn one_limit<S, B>(family: [S; 4])
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    for holder in &family {
        let held = holder.clone().oneshot(request(Method::GET)).await.unwrap();
        for other in family.clone() {
            let refused = other.oneshot(request(Method::GET)).await.map(drop).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::LimitReached);
        }
        drop(held);
    }
}

async fn one_breaker<S, B>(family: [S; 4], probe: &Probe)
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    // A quarter of the evidence comes through each.
    for client in family.iter().cycle().take(20) {
        if client.clone().oneshot(request(Method::POST)).await.is_err() {
            break;
        }
        advance(Duration::from_millis(200)).await;
    }
    let calls = probe.handle().calls();
    for client in family {
        let refused = client.oneshot(request(Method::GET)).await.map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BreakerOpen);
    }
    assert_eq!(probe.handle().calls(), calls);
}

async fn one_budget<S, B>(family: impl FnOnce(Policy, &Probe) -> [S; 4])
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    let policy = Policy::builder()
        .with_jitter(Jitter::None)
        .with_base(Duration::ZERO)
        .with_budget_floor(0.0);
    // Two tokens and two slots, and none to come: who comes second finds nothing left.
    let mut attempts = Vec::new();
    for client in family(policy.build().unwrap(), &failing()) {
        let response = client.oneshot(request(Method::GET)).await.unwrap();
        attempts.push(response.extensions().get::<Report>().map(Report::attempts));
    }
    assert_eq!(attempts, [3, 1, 1, 1].map(Some));
}

async fn one_stock() {
    let policy = Policy::builder().with_attempts(5).with_budget_floor(1e-9).build().unwrap();
    let layer = RetryBudgetLayer::new(policy);
    let mut tokens = Vec::new();
    for client in family(&layer, &failing()) {
        let mut repeat = request(Method::GET);
        Attempt::mark_repeat(repeat.extensions_mut());
        let _ = client.oneshot(repeat).await;
        tokens.push(layer.budget().tokens().round());
    }
    assert_eq!(tokens, [4.0, 3.0, 2.0, 1.0], "of 4.5, rounded");
}

async fn one_cooldown() {
    let layer = CooldownLayer::new(Policy::default());
    let probe = failing();
    for told in family(&layer, &telling(probe.clone())) {
        assert!(told.oneshot(request(Method::GET)).await.is_ok());
        let calls = probe.handle().calls();
        for other in family(&layer, &telling(probe.clone())) {
            let refused = other.oneshot(request(Method::GET)).await.map(drop).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::CoolingDown);
        }
        assert_eq!(probe.handle().calls(), calls);
        advance(LONG).await;
    }
}

/// A layer without a memory: whatever went before, and through whichever of the family, each call
/// goes at once and ends as the first one did.
async fn nothing_shared<L, S, B>(layer: L, end: Option<ErrorKind>)
where
    L: Layer<Probe, Service = S> + Clone,
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    assert!(size_of::<S>() <= size_of::<Probe>() + 3 * size_of::<u64>(), "settings, no state");
    let hanging = Answer::status(503).when(if end.is_some() { When::Never } else { When::NOW });
    let probe = Probe::answering([hanging]);
    for _ in 0..10 {
        // All under way at once, and none in the way of another.
        let family = family(&layer, &probe).map(|it| it.oneshot(request(Method::GET)));
        let (start, calls) = (Instant::now(), probe.handle().calls());
        for result in futures_util::future::join_all(family).await {
            assert_eq!(result.map(|it| it.status().as_u16()).map_err(|it| Some(it.kind())), {
                end.map_or(Ok(503), |end| Err(Some(end)))
            });
        }
        let took = if end.is_some() { LONG } else { Duration::ZERO };
        assert_eq!((start.elapsed(), probe.handle().calls()), (took, calls + 4));
    }
}

pub(crate) async fn send_and_sync(kind: Kind) {
    let policy = Policy::default();
    match kind {
        Kind::Retry => layer(&RetryLayer::new(policy)),
        Kind::CircuitBreaker => layer(&CircuitBreakerLayer::new(policy)),
        Kind::RetryAfter => layer(&RetryAfterLayer::new()),
        Kind::ConcurrencyLimit => layer(&ConcurrencyLimitLayer::from_policy(policy)),
        Kind::AttemptTimeout => layer(&AttemptTimeoutLayer::new(LONG)),
        Kind::Deadline => layer(&DeadlineLayer::new(LONG)),
        Kind::RetryBudget => layer(&RetryBudgetLayer::new(policy)),
        Kind::Cooldown => layer(&CooldownLayer::new(policy)),
        Kind::IdempotencyKey => layer(&IdempotencyKeyLayer::new()),
        Kind::BufferedResponse => layer(&BufferedResponseLayer::default()),
        Kind::GrpcStatus => layer(&GrpcStatusLayer::new()),
        Kind::Stack => layer(&Stack::new(policy)),
    }
}

fn layer<L, B>(_: &L)
where
    L: Layer<Probe> + Clone + Send + Sync + 'static,
    L::Service: Service<Request<Body>, Response = Response<B>, Error = Error>,
    L::Service: Clone + Send + Sync + 'static,
    <L::Service as Service<Request<Body>>>::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Send + Sync + 'static,
{
}
