//! A body that breaks off is a failed attempt: to the retry, its budget, and the breaker.

use std::error::Error as _;
use std::io;

use abate::fault::Known;
use abate::{
    AttemptTimeoutLayer, BreakerState, BufferedResponseLayer, CircuitBreakerLayer, Error,
    ErrorKind, Fault, Jitter, Policy, Report, RetryLayer, Stack, StopReason,
};
use abate_tests::play::Beat;
use abate_tests::rig::{get, tried};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::time::sleep;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::{Tested, answer, layer, millis, read, seconds};

fn broken() -> Answer {
    answer([Beat::data("half a"), Beat::Pause(millis(10)), Beat::Break])
}

fn fine() -> Answer {
    answer([Beat::data("all of "), Beat::Pause(millis(10)), Beat::data("it")])
}

fn steady() -> Policy {
    Policy::builder().with_jitter(Jitter::None).build().unwrap()
}

// BR-10
#[tokio::test(start_paused = true)]
async fn it_is_tried_again_as_one_unit_on_the_same_budget() -> Tested {
    let script = Script::of([broken(), broken(), fine()]);
    let retry = RetryLayer::new(steady());
    let breaker = CircuitBreakerLayer::new(Policy::default());
    let budget = retry.budget().unwrap();
    let before = budget.tokens();
    let service = ServiceBuilder::new()
        .layer(retry)
        .layer(breaker)
        .layer(layer())
        .layer(AttemptTimeoutLayer::new(seconds(5)))
        .service(script.clone());
    let response = service.oneshot(get()).await?;
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(tried(report), [0, 0, 200]);
    let at: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
    assert_eq!(at, [0, 110, 320].map(millis), "the wait begins when the body breaks");
    let spent = before - budget.tokens();
    assert!((1.7..=2.0).contains(&spent), "a token each, and a bit for the success: {spent}");
    assert_eq!(read(response).await?, "all of it", "and nothing of the halves");
    assert_eq!(script.open(), 0);
    Ok(())
}

// BR-10
#[tokio::test(start_paused = true)]
async fn a_stack_takes_it_as_its_client() -> Tested {
    let script = Script::of([broken(), fine()]);
    let stack = Stack::new(Policy::default());
    let response = stack.layer(layer().layer(script.clone())).oneshot(get()).await?;
    assert_eq!(tried(response.extensions().get().unwrap()), [0, 200]);
    assert_eq!(read(response).await?, "all of it");

    // Its attempt timeout is for head and body.
    let script = Script::of([answer([Beat::Hang]).after(seconds(3)), fine()]);
    let policy = Policy::builder().with_attempt_timeout(seconds(4)).build()?;
    let layer = BufferedResponseLayer::default();
    let response = Stack::new(policy).layer(layer.layer(script.clone())).oneshot(get()).await?;
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.elapsed() - report.waited(), seconds(4) + millis(10));
    assert_eq!(read(response).await?, "all of it");
    Ok(())
}

// BR-10
#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_ends_with_the_error_of_its_body() -> Tested {
    let script = Script::of([broken()]);
    let service = RetryLayer::new(steady()).layer(layer().layer(script.clone()));
    let mut post = get();
    *post.method_mut() = Method::POST;
    let error = service.oneshot(post).await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
    assert_eq!((error.attempts(), script.count(), script.open()), (1, 1, 0));
    assert_eq!(error.report().unwrap().stop_reason(), Some(StopReason::NotIdempotent));
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset), "untouched");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_request_that_had_a_head_was_sent_whatever_the_error_of_its_body_says() -> Tested {
    // With and without a layer of ours between the body and this one.
    async fn fails<S, B>(client: S) -> Result<Error, BoxError>
    where
        S: tower::Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body + Unpin,
        B::Error: Into<BoxError>,
    {
        let failed = layer().layer(client).oneshot(get()).await;
        Ok(failed.map(drop).unwrap_err())
    }
    let client = service_fn(async |_: Request<Full<Bytes>>| {
        let unsent = Known::new(Fault::Unsent).with_source("as if it had not been sent");
        let frames = stream::iter([Err::<Frame<Bytes>, _>(unsent)]);
        Ok::<_, Error>(Response::new(StreamBody::new(frames)))
    });
    for error in
        [fails(client).await?, fails(AttemptTimeoutLayer::new(seconds(1)).layer(client)).await?]
    {
        assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
        let mut source = error.source();
        let mut faults = Vec::new();
        while let Some(error) = source {
            faults.extend(error.downcast_ref().map(Known::fault));
            source = error.source();
        }
        assert_eq!(faults, [Fault::Ambiguous, Fault::Unsent], "and the original is kept");
    }
    Ok(())
}

// BR-10
#[tokio::test(start_paused = true)]
async fn it_is_a_failure_to_the_breaker_also_below_the_rate_at_which_heads_hide_it() -> Tested {
    // One in a second: by their heads, these are successes one and all, and end each streak.
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let service = breaker.layer(layer().layer(Script::of([broken()])));
    for calls in 1..=10 {
        assert_eq!(breaker.handle().state(), BreakerState::Closed, "{calls}");
        assert_eq!(service.clone().oneshot(get()).await.unwrap_err().kind(), ErrorKind::Client);
        sleep(seconds(1)).await;
    }
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_is_tried_again_too() -> Tested {
    let script = Script::of([answer([Beat::data("half"), Beat::Hang]), fine()]);
    let service = RetryLayer::new(steady()).layer(layer().layer(script.clone()));
    let response = service.oneshot(get()).await?;
    assert_eq!(script.arrived()[1].at, seconds(2) + millis(100));
    assert_eq!(read(response).await?, "all of it");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_breaks_off_beyond_the_cap_is_a_failure_to_the_breaker_and_not_tried_again() -> Tested
{
    let script = Script::of([answer([Beat::data("more than ten"), Beat::Break])]);
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let service =
        RetryLayer::new(Policy::default()).layer(breaker.layer(layer().layer(script.clone())));
    for calls in 1..=20 {
        let Ok(response) = service.clone().oneshot(get()).await else { break };
        assert!(response.into_body().collect().await.is_err());
        assert_eq!(script.count(), calls);
        sleep(millis(250)).await;
    }
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    Ok(())
}
