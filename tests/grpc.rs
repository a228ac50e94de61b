//! The outcome of gRPC calls, wherever the server writes it: to the layer that looks for it, and to
//! retry, budget, breaker and hints above.

mod grpc_breakers;
mod grpc_hints;
mod grpc_waits;

use std::time::Duration;

use abate::grpc::GrpcStatusLayer;
use abate::{Idempotent, Policy, Report, Stack, StopReason};
use abate_tests::play::Beat;
use abate_tests::rig::AnyBody;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

/// A message of gRPC with nothing in it.
const MESSAGE: Beat = Beat::Data(Bytes::from_static(&[0; 5]));

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A call, as each call of gRPC is one.
fn call() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from("question"));
    *request.method_mut() = Method::POST;
    request
}

/// One that may be repeated.
fn repeatable() -> Request<Full<Bytes>> {
    let mut request = call();
    request.extensions_mut().insert(Idempotent(true));
    request
}

fn fields<const N: usize>(fields: [(&'static str, &'static str); N]) -> HeaderMap {
    let field = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    fields.into_iter().map(field).collect()
}

/// An answer of gRPC, as far as its head.
fn head() -> Answer {
    Answer::status(200).header("content-type", "application/grpc+proto")
}

fn trailers(code: &'static str) -> Beat {
    Beat::Trailers(fields([("grpc-status", code)]))
}

fn ok() -> Answer {
    head().body([MESSAGE, trailers("0")])
}

/// The stack over the layer, by the default policy for gRPC.
async fn through(
    script: &Script,
    request: Request<Full<Bytes>>,
) -> Result<Response<AnyBody>, BoxError> {
    let stack = Stack::new(Policy::builder().with_grpc().build()?);
    let service = stack.layer(GrpcStatusLayer::new().layer(script.clone()));
    let response = service.oneshot(request).await?;
    Ok(response.map(|body| body.map_err(Into::into).boxed()))
}

fn attempts<B>(response: &Response<B>) -> Option<u32> {
    response.extensions().get::<Report>().map(Report::attempts)
}

fn stopped<B>(response: &Response<B>) -> Option<StopReason> {
    response.extensions().get::<Report>()?.stop_reason()
}

// CL-04
#[tokio::test(start_paused = true)]
async fn a_failure_in_the_headers_is_tried_again_and_no_frame_is_looked_at() -> Tested {
    let failed = || head().header("grpc-status", "14").body([Beat::Hang]);
    let script = Script::of([failed(), failed(), ok()]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), attempts(&response)), (3, Some(3)));
    assert_eq!(response.into_body().collect().await?.to_bytes(), &[0; 5][..]);

    let script = Script::of([failed()]);
    let response = GrpcStatusLayer::new().layer(script.clone()).oneshot(call()).await?;
    assert_eq!((response.headers()["grpc-status"].as_bytes(), script.count()), (&b"14"[..], 1));
    assert_eq!((script.bodies()[0].polls(), script.elapsed()), (0, Duration::ZERO));
    Ok(())
}

// CL-04
#[tokio::test(start_paused = true)]
async fn a_failure_in_trailers_behind_nothing_is_tried_again() -> Tested {
    let failed = || head().body([trailers("14")]);
    let script = Script::of([failed(), failed(), ok()]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), attempts(&response)), (3, Some(3)));
    let body = response.into_body().collect().await?;
    assert_eq!(body.trailers().map(|it| it["grpc-status"].as_bytes()), Some(&b"0"[..]));
    assert_eq!(body.to_bytes(), &[0; 5][..]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn trailers_behind_nothing_that_tell_of_a_failure_become_headers_all_of_them() -> Tested {
    let told = fields([
        ("grpc-status", "14"),
        ("grpc-message", "closing%20down"),
        ("grpc-status-details-bin", "CA4"),
        ("x-shard", "7"),
        ("x-shard", "8"),
    ]);
    let head = head().header("x-shard", "6").header("grpc-message", "soon");
    let script = Script::of([head.body([Beat::Trailers(told)])]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), stopped(&response)), (3, Some(StopReason::Attempts)));
    let (head, mut body) = response.into_parts();
    assert_eq!(head.headers["grpc-status"], "14");
    assert_eq!(head.headers["grpc-status-details-bin"], "CA4");
    let of = |name| head.headers.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(of("grpc-message"), ["closing%20down"], "the last word of the protocol");
    assert_eq!(of("x-shard"), ["6", "7", "8"], "what the application says, whole");
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(body.frame().await.is_none());
    Ok(())
}

// CL-04
#[tokio::test(start_paused = true)]
async fn a_message_is_handed_on_first_and_its_call_is_a_success() -> Tested {
    let script = Script::of([head().body([MESSAGE, trailers("14")])]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), attempts(&response)), (1, None), "which needs no report");
    assert!(!response.headers().contains_key("grpc-status"));
    assert_eq!((script.bodies()[0].polls(), script.elapsed()), (1, Duration::ZERO));
    let mut body = response.into_body();
    assert!(!body.is_end_stream());
    let first = body.frame().await.ok_or("no message")??.into_data();
    assert_eq!(first.as_deref().ok(), Some(&[0; 5][..]));
    let last = body.frame().await.ok_or("no trailers")??.into_trailers();
    assert_eq!(last.ok(), Some(fields([("grpc-status", "14")])), "as they were");
    assert!(body.frame().await.is_none());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_no_messages_keeps_its_trailers() -> Tested {
    for end in [trailers("0"), Beat::trailer("x-sum", "0")] {
        let script = Script::of([head().body([end.clone()])]);
        let response = through(&script, repeatable()).await?;
        assert_eq!((script.count(), response.headers().len()), (1, 1));
        let mut body = response.into_body();
        assert!(!body.is_end_stream(), "the trailers are still to come");
        let last = body.frame().await.ok_or("no trailers")??.into_trailers();
        let Beat::Trailers(sent) = end else { return Err("no trailers".into()) };
        assert_eq!(last.ok(), Some(sent));
        assert!(body.is_end_stream());
        assert!(body.frame().await.is_none());
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_of_grpc_is_not_looked_into() -> Tested {
    let pages = [
        Answer::status(200).header("content-type", "text/html"),
        Answer::status(503).header("content-type", "application/grpc"),
    ];
    for page in pages {
        let script = Script::of([page.body([trailers("14")])]);
        let response = GrpcStatusLayer::new().layer(script.clone()).oneshot(call()).await?;
        assert!(!response.headers().contains_key("grpc-status"));
        assert_eq!(script.bodies()[0].polls(), 0);
        let body = response.into_body().collect().await?;
        assert_eq!(body.trailers(), Some(&fields([("grpc-status", "14")])));
    }
    // A proxy that answers in the server's stead is retried for its status.
    let script = Script::of([Answer::status(503), ok()]);
    assert_eq!(attempts(&through(&script, repeatable()).await?), Some(2));
    // And a server that forgets its content type is one of gRPC all the same.
    let script = Script::of([Answer::status(200).body([trailers("14")]), ok()]);
    assert_eq!(attempts(&through(&script, repeatable()).await?), Some(2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_before_its_first_frame_is_a_failed_attempt() -> Tested {
    let script = Script::of([head().body([Beat::Break]), ok()]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), attempts(&response)), (2, Some(2)));

    let script = Script::of([head().body([Beat::Break])]);
    let result = through(&script, call()).await;
    let error = result.map(drop).err().ok_or("there is no answer")?;
    let error = error.downcast::<abate::Error>()?;
    assert_eq!((error.kind(), error.fault()), (abate::ErrorKind::Client, abate::Fault::Ambiguous));
    assert_eq!(script.count(), 1, "it may have been carried out");

    // Behind a message it is the reader's.
    let script = Script::of([head().body([MESSAGE, Beat::Break])]);
    let response = through(&script, repeatable()).await?;
    assert_eq!(script.count(), 1);
    assert!(response.into_body().collect().await.is_err());
    Ok(())
}
