//! What clones of a service or of a layer share, and what may be shared with them.

use std::time::Duration;

use abate::{
    Attempt, AttemptTimeoutLayer, BreakerState, CircuitBreakerLayer, ConcurrencyLimitLayer,
    DeadlineLayer, Error, ErrorKind, Jitter, Policy, Report, ResponseBody, RetryAfterLayer,
    RetryBudgetLayer, RetryLayer, Stack, StackService,
};
use abate_tests::plan::{Answer, When};
use abate_tests::probe::{Probe, ProbeBody};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};

type Body = Full<Bytes>;

fn request(method: Method) -> Request<Body> {
    let mut request = Request::new(Body::default());
    *request.method_mut() = method;
    request
}

/// Four services that are one: two of a layer, one of its clone, and a clone of the last.
fn family<L, S>(layer: &L, probe: &Probe) -> [S; 4]
where
    L: Layer<Probe, Service = S> + Clone,
    S: Clone,
{
    let of_clone = layer.clone().layer(probe.clone());
    [layer.layer(probe.clone()), layer.layer(probe.clone()), of_clone.clone(), of_clone]
}

/// An answer whose body keeps its permit.
fn holding() -> Probe {
    Probe::answering([Answer::status(200).with_chunks(1, When::Never)])
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

#[tokio::test(start_paused = true)]
async fn a_limit_is_shared_by_all_that_its_layer_makes() {
    let policy = Policy::builder().with_concurrency(1).with_concurrency_wait(Duration::ZERO);
    let policy = policy.build().unwrap();
    one_limit(family(&ConcurrencyLimitLayer::from_policy(&policy), &holding())).await;
    one_limit(family(&Stack::new(policy), &holding())).await;
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

#[tokio::test(start_paused = true)]
async fn a_breaker_is_shared_by_all_that_its_layer_makes() {
    let probe = Probe::answering([Answer::status(503)]);
    let layer = CircuitBreakerLayer::new(Policy::default());
    one_breaker(family(&layer, &probe), &probe).await;
    assert_eq!(layer.clone().handle().state(), BreakerState::Open);
    let stack = Stack::new(Policy::default());
    one_breaker(family(&stack, &probe), &probe).await;
    assert_eq!(stack.clone().breaker().state(), BreakerState::Open);
}

/// The tokens that are left after each of the family made one repeat.
async fn after_repeats<S, B>(family: [S; 4], layer: &RetryBudgetLayer) -> Vec<f64>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    let mut tokens = Vec::new();
    for client in family {
        let mut repeat = request(Method::GET);
        Attempt::mark_repeat(repeat.extensions_mut());
        let _ = client.oneshot(repeat).await;
        tokens.push(layer.budget().tokens().round());
    }
    tokens
}

async fn one_budget<S, B>(family: [S; 4])
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone,
{
    // Two tokens and two slots, and none to come: who comes second finds nothing left.
    let mut attempts = Vec::new();
    for client in family {
        let response = client.oneshot(request(Method::GET)).await.unwrap();
        attempts.push(response.extensions().get::<Report>().map(Report::attempts));
    }
    assert_eq!(attempts, [3, 1, 1, 1].map(Some));
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_shared_by_all_that_its_layer_makes() {
    let policy = Policy::builder()
        .with_jitter(Jitter::None)
        .with_base(Duration::ZERO)
        .with_budget_floor(0.0);
    let policy = policy.build().unwrap();
    let probe = Probe::answering([Answer::status(503)]);
    one_budget(family(&RetryLayer::new(policy.clone()), &probe)).await;
    one_budget(family(&Stack::new(policy), &probe)).await;

    let policy = Policy::builder().with_attempts(5).with_budget_floor(1e-9).build().unwrap();
    let layer = RetryBudgetLayer::new(policy);
    let left = after_repeats(family(&layer, &probe), &layer).await;
    assert_eq!(left, [4.0, 3.0, 2.0, 1.0], "of 4.5, rounded");
}

#[test]
fn services_and_layers_can_be_cloned_and_shared_among_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    fn layer<L, B>(_: &L)
    where
        L: Layer<Probe> + Clone + Send + Sync + 'static,
        L::Service: Service<Request<Body>, Response = Response<B>, Error = Error>,
        L::Service: Clone + Send + Sync + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + Sync + 'static,
    {
        shared::<L>();
        shared::<L::Service>();
    }
    let policy = Policy::default();
    layer(&RetryLayer::new(policy.clone()));
    layer(&CircuitBreakerLayer::new(&policy));
    layer(&RetryAfterLayer::new());
    layer(&RetryBudgetLayer::new(&policy));
    layer(&ConcurrencyLimitLayer::from_policy(&policy));
    layer(&AttemptTimeoutLayer::new(Duration::from_secs(1)));
    layer(&DeadlineLayer::new(Duration::from_secs(1)));
    layer(&Stack::new(policy));
    shared::<StackService<Probe>>();

    fn body<B: Send + Sync + 'static>() {}
    body::<ResponseBody<ProbeBody>>();
}
