//! Each of our layers among those of tower and tower-http, over clients that never leave the
//! process: attempts, bodies and trailers come through, and all that was held comes back.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod foreign_http;
mod foreign_tower;

use std::task::{Context, Poll};
use std::time::Duration;

use abate::{Jitter, Policy, Report};
use abate_tests::play::Beat;
use abate_tests::rig::{AnyBody, Kind, Rig};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceExt};

abate_tests::cells! {
    [
        retry: Retry,
        circuit_breaker: CircuitBreaker,
        retry_after: RetryAfter,
        concurrency_limit: ConcurrencyLimit,
        attempt_timeout: AttemptTimeout,
        deadline: Deadline,
        retry_budget: RetryBudget,
        cooldown: Cooldown,
        idempotency_key: IdempotencyKey,
        buffered_response: BufferedResponse,
        grpc_status: GrpcStatus,
        stack: Stack
    ]
    over_concurrency_limit: foreign_tower::over_concurrency_limit;
    over_load_shed: foreign_tower::over_load_shed;
    over_timeout: foreign_tower::over_timeout;
    over_buffer: foreign_tower::over_buffer;
    over_balance: foreign_tower::over_balance;
    over_trace: foreign_http::over_trace;
    under_trace: foreign_http::under_trace;
    over_set_header: foreign_http::over_set_header;
    under_set_header: foreign_http::under_set_header;
    over_follow_redirect: foreign_http::over_follow_redirect;
    under_follow_redirect: foreign_http::under_follow_redirect;
    over_decompression: foreign_http::over_decompression;
    under_decompression: foreign_http::under_decompression;
}

/// One permit, and a budget that never ends.
fn policy() -> Policy {
    Policy::builder()
        .with_jitter(Jitter::None)
        .with_budget_floor(1e6)
        .with_concurrency(1)
        .with_concurrency_wait(Duration::from_secs(20))
        .build()
        .unwrap()
}

/// The attempts of one call: two that fail, and one that does not.
fn attempts(kind: Kind) -> usize {
    if kind.retries() { 3 } else { 1 }
}

/// Fails as often as is repeated, and then answers, again and again, in two parts and trailers.
fn client(kind: Kind) -> (Strict<Script>, Script) {
    answering(kind, |answer| {
        answer.body([Beat::data("hel"), Beat::data("lo"), Beat::trailer("x-sum", "5")])
    })
}

fn answering(
    kind: Kind,
    answer: impl Fn(Answer) -> Answer + Send + Sync + 'static,
) -> (Strict<Script>, Script) {
    let attempts = attempts(kind);
    let script = Script::by(move |n| match (n + 1) % attempts {
        0 => answer(Answer::status(200)),
        _ => Answer::status(503).body([Beat::data("busy")]),
    });
    (Strict::new(script.clone()), script)
}

/// A request that may be repeated, with a body.
fn put() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from("hello"));
    *request.method_mut() = Method::PUT;
    *request.uri_mut() = "http://a.test/".parse().unwrap();
    request
}

/// Makes three calls through one handle, and looks at all that came and all that is left.
async fn passes<S, E>(rig: &Rig, mut client: S, script: &Script)
where
    S: Service<Request<Full<Bytes>>, Response = Response<AnyBody>, Error = E>,
    E: std::fmt::Debug,
{
    let (kind, tokens) = (rig.kind, rig.tokens());
    for round in 1..=3 {
        let response = client.ready().await.unwrap().call(put()).await.unwrap();
        assert_eq!(response.status(), 200);
        let report = response.extensions().get::<Report>().map(Report::attempts);
        assert!(!kind.retries() || report == Some(3), "{report:?}");
        assert_eq!(rig.in_use(), u32::from(rig.limit.is_some()), "until it has been read");
        let read = response.into_body().collect().await.unwrap();
        let trailers = read.trailers().cloned().unwrap_or_default();
        assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"5".parse().unwrap()));
        assert_eq!(read.to_bytes(), "hello");
        assert_eq!((rig.in_use(), script.open()), (0, 0));
        let calls = script.arrived();
        let sent = calls.iter().filter(|it| it.uri.path() == "/");
        assert_eq!(sent.count(), round * attempts(kind));
        for arrived in calls {
            let body = if arrived.method == Method::PUT { "hello" } else { "" };
            assert_eq!(arrived.body.as_deref(), Some(body.as_bytes()));
        }
    }
    if let (true, Some(before), Some(now)) = (kind.retries(), tokens, rig.tokens()) {
        assert!(before - now < 6.1, "each repeat was paid for once");
    }
}

/// Panics when it is called without having been readied; a clone has not been.
#[derive(Debug)]
struct Strict<S> {
    inner: S,
    ready: bool,
}

impl<S> Strict<S> {
    const fn new(inner: S) -> Self {
        Self { inner, ready: false }
    }
}

impl<S: Clone> Clone for Strict<S> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone())
    }
}

impl<S: Service<R>, R> Service<R> for Strict<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let ready = self.inner.poll_ready(cx);
        self.ready = matches!(ready, Poll::Ready(Ok(())));
        ready
    }

    fn call(&mut self, request: R) -> S::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        self.inner.call(request)
    }
}
