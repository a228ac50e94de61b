//! Whatever once went wrong between the layers, and must not again.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, BoxError, BreakerState, CircuitBreakerLayer, DeadlineLayer, ErrorKind,
    Policy, ReplayBody, RetryLayer, Stack, StackService,
};
use abate_tests::plan::{Answer as Planned, When};
use abate_tests::play::Beat;
use abate_tests::probe::{Probe, ProbeBody};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use tokio::time::{advance, sleep};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};

fn retries() -> RetryLayer {
    RetryLayer::new(Policy::default()).without_budget().with_seed(1)
}

/// A request to `/` on a host that is named by its header alone.
fn to(host: &'static str) -> Request<Full<Bytes>> {
    let mut request = get();
    *request.uri_mut() = Uri::from_static("/");
    request.headers_mut().insert("host", HeaderValue::from_static(host));
    request
}

// AM-01
#[tokio::test(start_paused = true)]
async fn an_inner_retry_below_a_buffer_stands_down_at_least_for_marked_repeats() {
    let script = Script::of([Answer::status(503)]);
    let inner = tower::buffer::Buffer::new(retries().layer(script.clone()), 8);
    retries().layer(inner).oneshot(get()).await.unwrap();
    assert!(script.count() <= 5, "{} requests", script.count());
}
#[tokio::test(start_paused = true)]
async fn a_fresh_process_has_all_attempts_whatever_its_policy() {
    for (attempts, floor) in [(3, 0.0), (5, 0.2)] {
        for _ in 0..100 {
            let policy =
                Policy::builder().with_attempts(attempts).with_budget_floor(floor).build().unwrap();
            let script = Script::of([Answer::status(503)]);
            RetryLayer::new(policy).layer(script.clone()).oneshot(get()).await.unwrap();
            assert_eq!(script.count(), attempts as usize, "floor {floor}");
        }
    }
}
// BR-10
#[tokio::test(start_paused = true)]
async fn bodies_that_all_break_off_open_the_breaker() {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let service =
        breaker.layer(Script::of([Answer::status(200).body([Beat::data("x"), Beat::Break])]));
    for _ in 0..2_000 {
        if let Ok(response) = service.clone().oneshot(get()).await {
            assert!(response.into_body().collect().await.is_err());
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert!(breaker.handle().transitions() > 0);
}
// TO-07
#[tokio::test(start_paused = true)]
async fn a_deadline_above_a_retry_keeps_the_report() {
    let script = Script::of([Answer::status(503), Answer::hang()]);
    let service = DeadlineLayer::new(Duration::from_secs(2)).layer(retries().layer(script.clone()));
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), script.count()), (ErrorKind::Deadline, 2));
    assert!(error.attempts() >= 1, "{error:?}");
}
#[tokio::test(start_paused = true)]
async fn a_call_to_another_host_by_header_keeps_its_retries() {
    let tokens = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
    let (fetch, main) = (retries().layer(tokens.clone()), Script::of([Answer::status(200)]));
    let below = tower::service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
        let (fetch, main) = (fetch.clone(), main.clone());
        async move {
            fetch.oneshot(to("auth.test")).await?;
            main.oneshot(request).await
        }
    });
    retries().layer(below).oneshot(to("api.test")).await.unwrap();
    assert_eq!(tokens.count(), 3);
}
#[tokio::test(start_paused = true)]
async fn a_discarded_body_that_breaks_counts_once() {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let script = Script::of([Answer::status(503).body([Beat::data("x"), Beat::Break])]);
    let s = RetryLayer::new(Policy::builder().with_attempts(2).build().unwrap())
        .without_budget()
        .layer(breaker.layer(script.clone()));
    while breaker.handle().state() == BreakerState::Closed {
        let _ = s.clone().oneshot(get()).await;
        sleep(Duration::from_millis(700)).await;
    }
    assert!(script.count() >= 10, "{} requests", script.count());
}

type Sent = Request<ReplayBody<Full<Bytes>>>;

#[tokio::test(start_paused = true)]
async fn an_attempt_that_timed_out_is_gone_though_its_future_is_kept() {
    let second = Duration::from_secs(1);
    let hanging = || Probe::answering([Planned::status(200).when(When::Never)]);
    let probe = hanging();
    let service = AttemptTimeoutLayer::new(second).layer(probe.clone());
    let mut kept = Box::pin(made(service).await);
    assert_eq!(kept.as_mut().await.unwrap_err().kind(), ErrorKind::AttemptTimeout);
    let alone = probe.handle().held();
    let policy = Policy::builder().with_attempts(1).with_attempt_timeout(second);
    let stack = Stack::new(policy.with_concurrency(1).build().unwrap());
    let probe = hanging();
    let mut kept = Box::pin(made(stack.layer(probe.clone())).await);
    assert_eq!(kept.as_mut().await.unwrap_err().kind(), ErrorKind::AttemptTimeout);
    assert_eq!(stack.limit().in_use(), 0);
    assert_eq!((alone, probe.handle().held()), ((0, 0, 0), (0, 0, 0)));
}

async fn made<S: Service<Request<Full<Bytes>>, Error = abate::Error>>(mut service: S) -> S::Future {
    service.ready().await.unwrap().call(get())
}

/// Asks for a token, and goes on without one.
#[derive(Clone)]
struct Auth {
    inner: Probe,
    tokens: StackService<Probe>,
}

impl Service<Sent> for Auth {
    type Response = Response<ProbeBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::<Sent>::poll_ready(&mut self.inner, cx).map_err(Into::into)
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        let tokens = self.tokens.clone();
        Box::pin(async move {
            let _ = tokens.oneshot(get()).await;
            inner.call(request).await.map_err(Into::into)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_below_does_not_make_the_call_above_unsent() {
    let holding = Planned::status(404).with_chunks(1, When::Never);
    let wait = Duration::from_secs(9);
    let policy = Policy::builder().with_attempts(1).with_concurrency(1);
    let tokens = Stack::new(policy.clone().with_concurrency_wait(Duration::ZERO).build().unwrap());
    let token_server = Probe::answering([holding]);
    let _busy = tokens.layer(token_server.clone()).oneshot(get()).await.unwrap();

    let stack = Stack::new(policy.with_concurrency_wait(wait).build().unwrap());
    let server = Probe::answering([]);
    let tokens = tokens.layer(token_server);
    let client = stack.layer(Auth { inner: server.clone(), tokens });
    for _ in 0..10 {
        server.handle().answer([holding]);
        let holder = client.clone().oneshot(get()).await.unwrap();
        server.handle().answer([Planned::status(200).when(When::Never)]);
        let mut call = task::spawn(client.clone().oneshot(get()));
        assert_pending!(call.poll());
        drop(holder);
        assert_pending!(call.poll());
        assert_eq!(server.handle().held().1, 1, "it is sent");
        advance(Duration::from_secs(6)).await;
    }
    assert_eq!(stack.breaker().state(), BreakerState::Open, "ten hung, and were given up late");
}
