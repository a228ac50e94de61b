//! Response bodies that are read ahead: which ones are, how far, and for how long.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod buffered_attempts;

use std::future::{Future, Ready, ready};
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, BufferedBody, BufferedResponseLayer, ConcurrencyLimitLayer, Deadline,
    DeadlineLayer, Error, ErrorKind, Fault, Hold, Policy, Stack,
};
use abate_tests::events::Events;
use abate_tests::play::{Beat, Played};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tokio::time::{advance, sleep, timeout};
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{BoxError, Layer, Service, ServiceExt};

type Tested = Result<(), BoxError>;
type Answered = Response<BufferedBody<Played>>;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A cap of ten bytes, and two seconds.
fn layer() -> BufferedResponseLayer {
    BufferedResponseLayer::new(10).with_read_timeout(seconds(2))
}

fn answer(beats: impl Into<Vec<Beat>>) -> Answer {
    Answer::status(200).body(beats)
}

/// What the layer makes of an answer. A day is more than all that is waited for here; without a
/// bound a mistake would hang.
async fn call(script: &Script) -> Result<Answered, Error> {
    timeout(seconds(86_400), layer().layer(script.clone()).oneshot(get())).await.unwrap()
}

async fn read<B>(response: Response<B>) -> Result<String, B::Error>
where
    B: Body<Data = Bytes>,
{
    let data = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&data).into_owned())
}

#[tokio::test(start_paused = true)]
async fn a_body_is_whole_when_its_head_is_handed_on() -> Tested {
    let pause = || Beat::Pause(millis(300));
    let script = Script::of([answer([pause(), Beat::data("one "), pause(), Beat::data("two")])]);
    let response = call(&script).await?;
    assert_eq!((script.elapsed(), script.open()), (millis(600), 0));
    assert_eq!(script.bodies()[0].dropped(), Some(millis(600)), "its connection is free");
    assert_eq!(response.body().size_hint().exact(), Some(7), "nobody had said so");
    assert_eq!(read(response).await?, "one two");
    assert_eq!(script.elapsed(), millis(600), "nobody waits for it");
    Ok(())
}

// BR-07
#[tokio::test(start_paused = true)]
async fn trailers_are_kept_and_leave_the_size_open() -> Tested {
    for beats in [vec![], vec![Beat::data("one "), Beat::data("two")]] {
        let data = if beats.is_empty() { "" } else { "one two" };
        let pause = Beat::Pause(millis(10));
        let script =
            Script::of([answer([beats, vec![pause, Beat::trailer("x-sum", "7")]].concat())]);
        let mut body = call(&script).await?.into_body();
        assert_eq!((script.elapsed(), script.open()), (millis(10), 0));
        assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (data.len() as u64, None));
        if !data.is_empty() {
            assert_eq!(body.frame().await.unwrap()?.into_data().unwrap(), data);
        }
        assert!(!body.is_end_stream());
        assert_eq!(body.frame().await.unwrap()?.into_trailers().unwrap()["x-sum"], "7");
        assert!(body.is_end_stream() && body.size_hint().exact() == Some(0));
        assert!(body.frame().await.is_none());
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_of_a_stated_size_beyond_the_cap_is_not_touched() -> Tested {
    let script = Script::of([answer([Beat::data("eleven"), Beat::data("bytes")])]);
    let response = call(&script).await?;
    assert_eq!((script.bodies()[0].polls(), script.open()), (0, 1));
    assert_eq!(response.body().size_hint().exact(), Some(11));
    assert_eq!(read(response).await?, "elevenbytes");
    let script = Script::of([answer([Beat::data("ten"), Beat::data("by_tes_")])]);
    call(&script).await?;
    assert_eq!(script.bodies()[0].read(), 10, "one of just the cap is read");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_passes_the_cap_is_handed_on_as_a_stream_with_what_was_read_of_it() -> Tested {
    let pause = || Beat::Pause(seconds(1));
    let beats = [
        [Beat::data("one"), Beat::data(""), Beat::data("two"), pause()],
        [Beat::data("six..."), pause(), Beat::data("4th"), Beat::trailer("x-sum", "1")],
    ];
    let script = Script::of([answer(beats.concat())]);
    let mut body = call(&script).await?.into_body();
    assert_eq!((script.elapsed(), script.open()), (seconds(1), 1));
    assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (12, None));
    for data in ["onetwo", "six..."] {
        assert_eq!(body.frame().await.unwrap()?.into_data().unwrap(), data);
    }
    assert_eq!(script.elapsed(), seconds(1), "those were there");
    assert!(!body.is_end_stream());
    // Long after its time for reading.
    sleep(seconds(60)).await;
    assert_eq!(body.frame().await.unwrap()?.into_data().unwrap(), "4th");
    assert!(body.frame().await.unwrap()?.is_trailers());
    assert!(body.is_end_stream() && body.frame().await.is_none());
    assert_eq!(script.open(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_breaks_off_beyond_the_cap_is_an_error_to_its_reader() -> Tested {
    let script = Script::of([answer([Beat::data("more than ten"), Beat::Break])]);
    let mut body = call(&script).await?.into_body();
    assert_eq!(body.frame().await.unwrap()?.into_data().unwrap(), "more than ten");
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "as it came");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_body_nothing_is_read() -> Tested {
    async fn polls(method: Method, answer: Answer) -> Result<usize, BoxError> {
        let script = Script::of([answer]);
        let mut request = get();
        *request.method_mut() = method;
        layer().layer(script.clone()).oneshot(request).await?;
        Ok(script.bodies()[0].polls())
    }
    assert_eq!(polls(Method::GET, Answer::status(200)).await?, 0);
    // Of what there should not be: it would be waited for.
    let hanging = |code| Answer::status(code).body([Beat::Hang]);
    assert_eq!(polls(Method::HEAD, hanging(200)).await?, 0);
    assert_eq!(polls(Method::GET, hanging(204)).await?, 0);
    assert_eq!(polls(Method::GET, hanging(304)).await?, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn streams_and_failures_are_handed_on_at_once() -> Tested {
    let typed =
        |media_type| answer([Beat::data("a"), Beat::Hang]).header("content-type", media_type);
    for answer in [
        typed("text/event-stream"),
        typed("Text/Event-Stream; charset=utf-8"),
        typed("application/grpc"),
        typed("application/grpc+proto"),
        typed("multipart/x-mixed-replace; boundary=x"),
    ] {
        let script = Script::of([answer]);
        call(&script).await?;
        assert_eq!((script.elapsed(), script.bodies()[0].polls()), (seconds(0), 0));
    }
    for code in [408, 425, 429, 500, 502, 503, 504] {
        let script = Script::of([Answer::status(code).body([Beat::Hang])]);
        assert_eq!(call(&script).await?.status(), code);
        assert_eq!((script.elapsed(), script.bodies()[0].polls()), (seconds(0), 0), "{code}");
    }
    let pauses = || [Beat::data("{"), Beat::Pause(seconds(1)), Beat::data("}")];
    for answer in [
        answer(pauses()),
        answer(pauses()).header("content-type", "text/event"),
        answer(pauses()).header("content-type", "application/json"),
        Answer::status(404).body(pauses()),
        Answer::status(501).body(pauses()),
    ] {
        let script = Script::of([answer]);
        call(&script).await?;
        assert!(script.bodies()[0].ended(), "and nothing else is");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_there_in_time_is_an_attempt_that_timed_out() -> Tested {
    let drips = [Beat::data("."), Beat::Pause(millis(700))];
    for beats in [
        vec![Beat::Hang],
        vec![Beat::data("ten bytes!"), Beat::Hang],
        drips.into_iter().cycle().take(18).collect(),
        // Never pending, never longer, never at its end.
        vec![Beat::Pause(millis(1)), Beat::Endless(Bytes::new())],
    ] {
        let endless = beats.iter().any(|beat| matches!(beat, Beat::Endless(_)));
        let script = Script::of([answer(beats).after(seconds(5))]);
        let events = Events::listen();
        let called = tokio::spawn({
            let script = script.clone();
            async move { call(&script).await }
        });
        if endless {
            // Time stands still while there is something to do.
            while script.elapsed() < seconds(8) {
                advance(millis(100)).await;
            }
            assert!(called.is_finished());
        }
        let error = called.await?.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (ErrorKind::AttemptTimeout, Fault::Ambiguous));
        assert!(endless || script.elapsed() == seconds(7), "counted from the head");
        assert_eq!(script.open(), 0);
        let told = events.take();
        assert!(endless || told.iter().map(|it| &*it.message).eq(["ended"]), "{told:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_whose_time_is_up_is_let_go_also_if_its_call_is_kept() {
    let script = Script::of([answer([Beat::data("half"), Beat::Hang])]);
    let mut call = task::spawn(layer().layer(script.clone()).call(get()));
    assert_pending!(call.poll());
    advance(seconds(2)).await;
    assert!(call.is_woken());
    assert_ready_err!(call.poll());
    assert_eq!(script.open(), 0);
    assert_pending!(call.poll());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_covers_the_body() -> Tested {
    let script = Script::of([answer([Beat::Hang])]);
    let service = DeadlineLayer::new(millis(500)).layer(layer().layer(script.clone()));
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), script.elapsed()), (ErrorKind::Deadline, millis(500)));
    assert_eq!(script.open(), 0);

    // Without a layer that sees to it.
    let script = Script::of([answer([Beat::Hang])]);
    let mut request = get();
    let now = tokio::time::Instant::now().into_std();
    request.extensions_mut().insert(Deadline::after(now, millis(500)));
    let error = layer().layer(script.clone()).oneshot(request).await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Deadline, Fault::Cancelled));
    assert_eq!((script.elapsed(), script.open()), (millis(500), 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn below_it_an_attempt_timeout_that_covers_the_body_keeps_its_word() -> Tested {
    let script = Script::of([answer([Beat::Hang])]);
    let below = AttemptTimeoutLayer::new(seconds(1)).covering_body().layer(script.clone());
    let error = layer().layer(below).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), script.elapsed()), (ErrorKind::AttemptTimeout, seconds(1)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_held_while_the_body_is_read_ahead_and_as_long_as_its_hold_says() -> Tested {
    let body = || [Beat::data("a"), Beat::Pause(seconds(1)), Beat::data("b")];
    for (hold, after) in [(Hold::Head, 0), (Hold::Body, 1)] {
        let script = Script::of([answer(body())]);
        let limit = ConcurrencyLimitLayer::new(1)?.with_hold(hold);
        let service = limit.layer(layer().layer(script.clone()));
        let reading = tokio::spawn(service.oneshot(get()));
        sleep(millis(500)).await;
        assert_eq!(limit.handle().in_use(), 1);
        let response = reading.await??;
        assert_eq!(limit.handle().in_use(), after, "{hold:?}");
        assert_eq!(read(response).await?, "ab");
        assert_eq!(limit.handle().in_use(), 0);
    }
    // One below it has nothing to hold any more.
    let script = Script::of([answer(body())]);
    let limit = ConcurrencyLimitLayer::new(1)?;
    let response = layer().layer(limit.layer(script)).oneshot(get()).await?;
    assert_eq!(limit.handle().in_use(), 0);
    assert_eq!(read(response).await?, "ab");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_its_body_is_read_drops_the_body() -> Tested {
    let beats = [Beat::data("a"), Beat::Pause(millis(100)), Beat::data("b"), Beat::Hang];
    let script = Script::of([answer(beats)]);
    let limit = ConcurrencyLimitLayer::new(1)?;
    let service = Stack::new(Policy::default()).layer(layer().layer(limit.layer(script.clone())));
    for at in [0, 50, 100, 150] {
        assert!(timeout(millis(at), service.clone().oneshot(get())).await.is_err());
        assert_eq!((script.open(), limit.handle().in_use()), (0, 0), "after {at} ms");
    }
    Ok(())
}

/// Answers with the body that its request brought.
#[derive(Clone)]
struct Echo;

impl<B> Service<Request<B>> for Echo {
    type Response = Response<B>;
    type Error = Error;
    type Future = Ready<Result<Response<B>, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(Response::new(request.into_body())))
    }
}

#[test]
fn what_needs_no_waiting_needs_no_runtime() {
    let body = Full::new(Bytes::from_static(b"at once"));
    let mut call = std::pin::pin!(layer().layer(Echo).call(Request::new(body)));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
}

#[test]
fn the_defaults_are_what_the_docs_say() {
    assert_eq!(BufferedResponseLayer::DEFAULT_CAP, 1 << 20);
    assert_eq!(BufferedResponseLayer::DEFAULT_READ_TIMEOUT, seconds(10));
    let (default, new) = (BufferedResponseLayer::default(), BufferedResponseLayer::new(1 << 20));
    assert_eq!(format!("{default:?}"), format!("{new:?}"));
}
