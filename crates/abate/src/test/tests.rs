use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use abate_core::outcome::Fault;
use abate_core::policy::Policy;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use tokio_test::{assert_pending, assert_ready_err, assert_ready_ok, task};
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{Answer, Dependency, Probe};
use crate::clock::now;
use crate::{Attempt, ErrorKind, Stack, fault};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn answers_come_in_turn_to_all_clones_and_the_last_one_stays() {
    let stock =
        Dependency::answering([Answer::status(503), Answer::status(StatusCode::NO_CONTENT)]);
    for status in [503, 204, 204] {
        assert_eq!(stock.clone().oneshot(get()).await.unwrap().status(), status);
    }
    assert_eq!((stock.calls(), stock.attempts()), (3, vec![1, 1, 1]));
    stock.set_answers([Answer::status(500), Answer::status(200)]);
    for status in [500, 200, 200] {
        assert_eq!(stock.clone().oneshot(get()).await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn a_response_has_its_headers_and_its_body() {
    let answer = Answer::status(200)
        .with_header("x-from", "stock")
        .with_header(http::header::AGE, 7)
        .with_body("seven");
    let response = Dependency::answering([answer]).oneshot(get()).await.unwrap();
    assert_eq!(response.headers()["x-from"], "stock");
    assert_eq!(response.headers()["age"], "7");
    assert_eq!(response.body().size_hint().exact(), Some(5));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "seven");
    let empty = Dependency::answering([Answer::status(200)]).oneshot(get()).await.unwrap();
    assert!(empty.body().is_end_stream());
}

#[tokio::test]
async fn a_broken_body_fails_after_its_data() {
    let answer = Answer::status(200).with_body("sev").with_broken_body();
    let mut body = Dependency::answering([answer]).oneshot(get()).await.unwrap().into_body();
    assert_eq!(body.size_hint().exact(), None);
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "sev");
    assert!(!body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().unwrap_err().fault(), Fault::Ambiguous);
    assert!(body.frame().await.is_none());
}

#[test]
fn no_runtime_is_needed_without_a_delay_and_a_hang_is_for_ever() {
    let mut stock = ready(Dependency::answering([Answer::status(200), Answer::hang()]));
    assert_ready_ok!(task::spawn(stock.call(get())).poll());
    let mut hung = task::spawn(ready(stock).call(get()));
    assert_pending!(hung.poll());
    assert!(!hung.is_woken());
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_a_wait_on_tokios_clock() {
    let slow = Answer::status(200).with_delay(3600 * SECOND);
    let start = now();
    Dependency::answering([slow]).oneshot(get()).await.unwrap();
    assert_eq!(now() - start, 3600 * SECOND);
}

#[tokio::test]
async fn requests_are_kept_whole() {
    let stock = Dependency::answering([Answer::status(200)]);
    let request = Request::put("http://stock.internal/items/7?all").header("idempotency-key", "k");
    let body = Frames([Ok("se"), Ok("ven")].into());
    stock.clone().oneshot(request.extension(9_u8).body(body).unwrap()).await.unwrap();
    let received = &stock.requests()[0];
    assert_eq!((received.method().as_str(), received.uri().query()), ("PUT", Some("all")));
    assert_eq!(received.headers()["idempotency-key"], "k");
    assert_eq!(received.body(), "seven");
    assert_eq!(received.extensions().get(), Some(&9_u8));
}

#[tokio::test]
async fn a_request_whose_own_body_fails_is_nobody_elses_fault() {
    let stock = Dependency::answering([Answer::status(200)]);
    let body = Frames([Ok("se"), Err("the disk is gone")].into());
    let error = stock.clone().oneshot(Request::new(body)).await.unwrap_err();
    assert_eq!(error.fault(), Fault::Permanent);
    assert_eq!(error.source().unwrap().to_string(), "the disk is gone");
    assert!(stock.requests()[0].body().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_layers_above_see_the_fault_of_the_script() {
    for (fault, attempts) in [
        (Fault::Unsent, 3),
        (Fault::Ambiguous, 1),
        (Fault::Permanent, 1),
        (Fault::Local, 0),
        (Fault::Cancelled, 0),
    ] {
        let stock = Dependency::answering([Answer::fault(fault)]);
        let service = Stack::new(Policy::default()).with_seed(1).layer(stock.clone());
        let request = get().map(|_| Full::from("not idempotent"));
        let (mut head, body) = request.into_parts();
        head.method = Method::POST;
        let error = service.oneshot(Request::from_parts(head, body)).await.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, fault));
        assert_eq!((error.attempts(), stock.calls()), (attempts, attempts.max(1) as usize));
        assert!(error.source().unwrap().is::<fault::Known>());
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_numbered_by_the_retry_above_and_by_a_foreign_one() {
    let stock = Dependency::answering([503, 503, 200].map(Answer::status));
    let stack = Stack::new(Policy::default()).with_seed(1);
    stack.layer(stock.clone()).oneshot(get()).await.unwrap();
    assert_eq!(stock.attempts(), [1, 2, 3]);
    let mut repeat = get();
    Attempt::mark_repeat(repeat.extensions_mut());
    stock.clone().oneshot(repeat).await.unwrap();
    assert_eq!(stock.attempts(), [1, 2, 3, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_without_backoff_waits_only_when_the_server_asks() {
    let policy = Policy::default().without_backoff();
    let answers = [Answer::status(503), Answer::fault(Fault::Unsent), Answer::status(200)];
    let start = now();
    let stock = Dependency::answering(answers);
    let response = Stack::new(policy.clone()).layer(stock).oneshot(get()).await.unwrap();
    assert_eq!((response.status(), now() - start), (StatusCode::OK, Duration::ZERO));
    let asks = Answer::status(503).with_header("retry-after", "1");
    let stock = Dependency::answering([asks, Answer::status(200)]);
    Stack::new(policy).layer(stock).oneshot(get()).await.unwrap();
    assert!((SECOND..=SECOND * 5 / 4).contains(&(now() - start)));
}

#[test]
fn a_dependency_that_is_not_ready_is_not_to_be_called() {
    let mut stock = ready(Dependency::answering([Answer::status(200)]));
    assert!(panics(|| drop(stock.clone().call(get()))).starts_with("called without being ready"));
    drop(stock.call(get()));
    assert!(panics(|| drop(stock.call(get()))).starts_with("called without being ready"));
    assert_eq!(stock.calls(), 1);
}

#[test]
fn a_dependency_without_answers_is_not_to_be_called() {
    let mut stock = ready(Dependency::answering([]));
    assert!(panics(|| drop(stock.call(get()))).starts_with("called, with no answer"));
    assert_eq!(stock.calls(), 1, "which is told all the same");
}

#[test]
fn an_answer_that_cannot_be_given_is_a_panic() {
    for panic in [
        panics(|| drop(Answer::status(99))),
        panics(|| drop(Answer::status(200).with_header("no such name", "it"))),
        panics(|| drop(Answer::status(200).with_header("x", "line\nbreak"))),
        panics(|| drop(Answer::hang().with_body("?"))),
    ] {
        assert!(panic.starts_with("an answer that can be given"), "{panic}");
    }
}

#[test]
fn a_probe_wants_each_call_readied_on_the_very_instance() {
    let service = service_fn(async |_: ()| Ok::<_, Infallible>(()));
    let mut probe = Probe::new(service);
    assert_ready_ok!(task::spawn(probe.ready()).poll());
    let mut clone = probe.clone();
    assert!(panics(|| drop(clone.call(()))).starts_with("called without being ready"));
    assert_ready_ok!(task::spawn(probe.call(())).poll());
    assert!(panics(|| drop(probe.call(()))).starts_with("called without being ready"));
}

#[test]
fn a_probe_is_as_ready_as_what_it_watches() {
    #[derive(Debug)]
    struct Failing;
    impl Service<()> for Failing {
        type Response = ();
        type Error = &'static str;
        type Future = std::future::Ready<Result<(), Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Err("down"))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            std::future::ready(Ok(()))
        }
    }
    let mut probe = Probe::new(Failing);
    assert_eq!(assert_ready_err!(task::spawn(probe.ready()).poll()), "down");
    assert!(panics(|| drop(probe.call(()))).starts_with("called without being ready"));
}

fn get() -> Request<Full<Bytes>> {
    Request::get("http://stock.internal/7").body(Full::default()).unwrap()
}

fn ready(mut stock: Dependency) -> Dependency {
    let service: &mut Dependency = &mut stock;
    let mut cx = Context::from_waker(Waker::noop());
    let ready = Service::<Request<Full<Bytes>>>::poll_ready(service, &mut cx);
    assert!(matches!(ready, Poll::Ready(Ok(()))));
    stock
}

#[track_caller]
fn panics(what: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(what)).unwrap_err();
    let formatted = panic.downcast_ref::<String>().cloned();
    formatted.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned())).unwrap()
}

/// A body that streams these.
struct Frames(VecDeque<Result<&'static str, &'static str>>);

impl Body for Frames {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = self.0.pop_front();
        Poll::Ready(next.map(|it| it.map(|data| Frame::data(Bytes::from_static(data.as_bytes())))))
    }
}
