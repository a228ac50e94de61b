//! What becomes of request bodies.

use std::convert::Infallible;
use std::io;

use abate::{ErrorKind, Report, StopReason};
use abate_tests::events::Events;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, read, report, request, retries, stop};

/// Three chunks that nobody has in memory.
fn streamed<E: Send>() -> impl Body<Data = Bytes, Error = E> + Unpin + Send {
    StreamBody::new(stream::iter(["one", "two", "three"].map(|it| Ok(Frame::data(it.into())))))
}

fn put<B>(body: B) -> Request<B> {
    request(Method::PUT).map(|_| body)
}

async fn assert_is_sent_thrice_as<B>(body: B, data: &Bytes) -> Tested
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    let script = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
    let response = retries(3)?.layer(script.clone()).oneshot(put(body)).await?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 3));
    for (n, arrived) in script.arrived().into_iter().enumerate() {
        assert_eq!(arrived.body.as_ref(), Some(data), "attempt {}", n + 1);
    }
    Ok(())
}

// BR-01
#[tokio::test(start_paused = true)]
async fn a_body_in_memory_is_sent_again_to_the_byte_whatever_its_size() -> Tested {
    for size in [0, 1, 4_096, 4_097, 1 << 20] {
        let data: Bytes = (0..size).map(|n: u32| (n % 251) as u8).collect();
        assert_is_sent_thrice_as(Full::new(data.clone()), &data).await?;
        assert_is_sent_thrice_as(Full::new(data.clone()).boxed(), &data).await?;
        assert_is_sent_thrice_as(Full::new(data.clone()).boxed_unsync(), &data).await?;
        assert_is_sent_thrice_as(axum::body::Body::from(data.clone()), &data).await?;
    }
    assert_is_sent_thrice_as(Empty::new(), &Bytes::new()).await?;
    assert_is_sent_thrice_as(axum::body::Body::empty(), &Bytes::new()).await?;
    assert_is_sent_thrice_as(String::from("text"), &"text".into()).await
}

// BR-01
#[tokio::test(start_paused = true)]
async fn a_stream_is_sent_again_to_the_byte() -> Tested {
    let data = "onetwothree".into();
    assert_is_sent_thrice_as(streamed::<Infallible>(), &data).await?;
    assert_is_sent_thrice_as(streamed::<Infallible>().boxed_unsync(), &data).await?;
    assert_is_sent_thrice_as(axum::body::Body::new(streamed::<Infallible>()), &data).await?;
    // The length is known, and yet there is more than one frame.
    let collected = streamed::<Infallible>().collect().await?;
    assert_is_sent_thrice_as(collected, &data).await
}

/// Twice 40 kB: more than is recorded.
fn long() -> impl Body<Data = Bytes, Error = Infallible> + Unpin + Send {
    let chunk = |byte| Ok(Frame::data(Bytes::from(vec![byte; 40_000])));
    StreamBody::new(stream::iter([chunk(1), chunk(2)]))
}

async fn assert_is_sent_once<B>(body: B) -> Tested
where
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    let script = Script::of([Answer::status(503), Answer::status(200)]);
    let events = Events::listen();
    let response = retries(3)?.layer(script.clone()).oneshot(put(body)).await?;
    assert_eq!(response.status(), 503);
    assert_eq!(stop(&response), Some(StopReason::BodyNotReplayable));
    assert_eq!(events.messages(), ["stopped retrying"], "and nothing of a retry");
    let arrived = script.arrived();
    assert_eq!(arrived.len(), 1, "never again, and never without its body");
    let whole = [[1; 40_000], [2; 40_000]].concat();
    assert!(arrived[0].body.as_deref() == Some(&whole[..]));
    assert_eq!(arrived[0].frames, 2);
    Ok(())
}

// BR-01, BR-02
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_too_long_is_sent_once_as_it_is_and_the_answer_says_why() -> Tested {
    assert_is_sent_once(long()).await?;
    assert_is_sent_once(long().boxed_unsync()).await?;
    assert_is_sent_once(axum::body::Body::new(long())).await?;
    assert_is_sent_once(long().collect().await?).await
}

// BR-02
#[tokio::test(start_paused = true)]
async fn a_stream_is_no_error_and_no_matter_when_all_is_well() -> Tested {
    for method in [Method::POST, Method::PUT] {
        let script = Script::of([Answer::status(200)]);
        let request = request(method).map(|_| streamed::<Infallible>());
        let response = retries(3)?.layer(script.clone()).oneshot(request).await?;
        assert_eq!(response.status(), 200);
        assert_eq!(report(&response), None);
        assert_eq!(script.arrived()[0].body.as_deref(), Some(&b"onetwothree"[..]));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_never_sent_is_sent_then() -> Tested {
    let refused = Answer::fail(io::ErrorKind::ConnectionRefused);
    let script = Script::of([refused, Answer::status(200)]);
    let request = request(Method::POST).map(|_| streamed::<Infallible>());
    let response = retries(3)?.layer(script.clone()).oneshot(request).await?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 2));
    assert_eq!(script.arrived()[1].body.as_deref(), Some(&b"onetwothree"[..]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_body_reaches_whoever_sends_it_and_no_part_is_sent_again() -> Tested {
    let frames = [Ok(Frame::data(Bytes::from("one"))), Err(io::Error::other("torn"))];
    let script = Script::of([Answer::status(200)]);
    let request = put(StreamBody::new(stream::iter(frames)));
    let error = retries(3)?.layer(script.clone()).oneshot(request).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), script.count()), (ErrorKind::Client, 1, 1));
    let reason = error.report().and_then(Report::stop_reason);
    assert_eq!(reason, Some(StopReason::BodyNotReplayable));
    assert_eq!(script.arrived()[0].frames, 1);
    Ok(())
}

// BR-07
#[tokio::test(start_paused = true)]
async fn request_trailers_arrive_with_each_attempt() -> Tested {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("9"));
    let later = trailers.clone();
    let body = Full::new(Bytes::from("nine")).with_trailers(async { Some(Ok(later)) });
    let script = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
    let response = retries(3)?.layer(script.clone()).oneshot(put(Box::pin(body))).await?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 3));
    for arrived in script.arrived() {
        assert_eq!(arrived.body.as_deref(), Some(&b"nine"[..]));
        assert_eq!(arrived.trailers.as_ref(), Some(&trailers));
    }
    Ok(())
}

// BR-09
#[tokio::test(start_paused = true)]
async fn the_last_response_is_the_callers_with_a_body_to_read() -> Tested {
    use abate_tests::play::Beat;
    let answers: [Answer; 3] = ["first", "second", "third"].map(|text| {
        Answer::status(503).header("x-which", text).body([Beat::data(text), Beat::data("!")])
    });
    let script = Script::of(answers);
    let response = retries(3)?.layer(script.clone()).oneshot(put(streamed::<Infallible>())).await?;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["x-which"], "third");
    let told = report(&response).cloned().unwrap_or_default();
    assert_eq!((told.attempts(), told.stop_reason()), (3, Some(StopReason::Attempts)));
    assert_eq!(script.bodies()[2].polls(), 0, "nobody has touched it");
    assert_eq!(read(response).await?, "third!");
    Ok(())
}
