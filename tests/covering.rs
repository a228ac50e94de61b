//! Timeouts and deadlines that cover response bodies, and those that do not.

mod covering_stack;

use std::time::Duration;

use abate::{AttemptTimeoutLayer, BreakerState, CircuitBreakerLayer, ConcurrencyLimitLayer};
use abate::{DeadlineLayer, Error, ErrorKind, Fault, Policy, RetryLayer};
use abate_tests::events::Events;
use abate_tests::play::Beat;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use http::Response;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, Service, ServiceExt};

type Tested = Result<(), BoxError>;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A head at once, ten bytes, and then silence.
fn stalling() -> Script {
    Script::of([Answer::status(200).body([Beat::data("ten bytes!"), Beat::Hang])])
}

/// A head, and a body that takes as long again.
fn taking(half: Duration) -> Script {
    let body = [Beat::data("one"), Beat::Pause(half), Beat::data("two")];
    Script::of([Answer::status(200).after(half).body(body)])
}

/// Reads to the end, or to the error, which must be the last that there is.
async fn read<B>(response: Response<B>) -> Result<String, ErrorKind>
where
    B: Body<Data = bytes::Bytes, Error = Error> + Unpin,
{
    let (mut body, mut text) = (response.into_body(), String::new());
    // A day is more than all that covers a body here; without a bound a mistake would hang.
    while let Ok(Some(frame)) = timeout(seconds(86_400), body.frame()).await {
        match frame.map(|frame| frame.into_data().unwrap_or_default()) {
            Ok(data) => text.push_str(&String::from_utf8_lossy(&data)),
            Err(error) => {
                assert!(body.is_end_stream(), "nothing comes after it");
                assert_eq!(body.size_hint().exact(), Some(0));
                assert!(body.frame().await.is_none());
                return Err(error.kind());
            }
        }
    }
    Ok(text)
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_ends_with_the_kind_of_what_covers_it() -> Tested {
    let script = stalling();
    let attempt = AttemptTimeoutLayer::new(seconds(2)).covering_body().layer(script.clone());
    let response = attempt.oneshot(get()).await?;
    assert_eq!(script.elapsed(), seconds(0), "the head is there at once");
    let events = Events::listen();
    assert_eq!(read(response).await, Err(ErrorKind::AttemptTimeout));
    assert_eq!(script.elapsed(), seconds(2));
    assert_eq!((script.open(), script.bodies()[0].dropped()), (0, Some(seconds(2))));
    let told = events.take();
    assert_eq!(told.iter().map(|it| &*it.message).collect::<Vec<_>>(), ["ended"]);

    let script = stalling();
    let deadline = DeadlineLayer::new(seconds(3)).covering_body().layer(script.clone());
    assert_eq!(read(deadline.oneshot(get()).await?).await, Err(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), script.open()), (seconds(3), 0));
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn nothing_covers_a_body_unless_it_is_told_to() -> Tested {
    let script = stalling();
    let below = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
    let limit = ConcurrencyLimitLayer::new(1)?;
    let service = DeadlineLayer::new(seconds(3)).layer(limit.layer(below));
    let mut body = service.oneshot(get()).await?.into_body();
    assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
    assert!(timeout(seconds(3_600), body.frame()).await.is_err());
    assert_eq!((limit.handle().in_use(), script.open()), (1, 1), "and it holds on to all");
    drop(body);
    assert_eq!((limit.handle().in_use(), script.open()), (0, 0));
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn the_permit_comes_back_when_the_body_is_ended() -> Tested {
    let script = stalling();
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(60));
    let below = AttemptTimeoutLayer::new(seconds(2)).covering_body().layer(script.clone());
    let service = limit.layer(below);
    let first = service.clone().oneshot(get()).await?;
    let second = tokio::spawn(service.oneshot(get()));
    assert_eq!(read(first).await, Err(ErrorKind::AttemptTimeout));
    assert_eq!(second.await??.status(), 200);
    assert_eq!((script.elapsed(), script.most_open()), (seconds(2), 1));
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_body_that_is_ended_is_a_failure_of_the_dependency() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let below = AttemptTimeoutLayer::new(millis(300)).covering_body().layer(stalling());
    let service = breaker.layer(below);
    for n in 1..=10 {
        assert_eq!(breaker.handle().state(), BreakerState::Closed, "{n}");
        assert!(read(service.clone().oneshot(get()).await?).await.is_err());
    }
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    Ok(())
}

// TO-08
#[tokio::test(start_paused = true)]
async fn head_and_body_together_have_the_time_that_the_head_alone_had() -> Tested {
    for (timeout, expected) in [(81, Ok("onetwo".to_owned())), (79, Err(ErrorKind::AttemptTimeout))]
    {
        let script = taking(millis(40));
        let service = AttemptTimeoutLayer::new(millis(timeout)).covering_body();
        let response = service.layer(script.clone()).oneshot(get()).await?;
        assert_eq!(script.elapsed(), millis(40));
        assert_eq!(read(response).await, expected, "{timeout} ms");
    }
    Ok(())
}

// TO-08
#[tokio::test(start_paused = true)]
async fn a_retry_above_repeats_nothing_of_which_the_head_was_handed_on() -> Tested {
    let script = taking(millis(40));
    let below = AttemptTimeoutLayer::new(millis(50)).covering_body().layer(script.clone());
    let retry = RetryLayer::new(Policy::default()).layer(below);
    assert_eq!(read(retry.oneshot(get()).await?).await, Err(ErrorKind::AttemptTimeout));
    sleep(seconds(5)).await;
    assert_eq!(script.count(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_late_is_tried_again_whether_the_body_is_covered_or_not() -> Tested {
    let script = Script::of([Answer::hang(), Answer::status(200).body([Beat::data("fine")])]);
    let below = AttemptTimeoutLayer::new(seconds(1)).covering_body().layer(script.clone());
    let response = RetryLayer::new(Policy::default()).layer(below).oneshot(get()).await?;
    assert_eq!(read(response).await, Ok("fine".to_owned()));
    assert_eq!(script.count(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_two_that_cover_the_earlier_ends_it() -> Tested {
    for (deadline, attempt, kind, at) in [
        (2, 5, ErrorKind::Deadline, 2),
        (5, 2, ErrorKind::AttemptTimeout, 2),
        (1, 60, ErrorKind::Deadline, 1),
    ] {
        let script = stalling();
        let attempt = AttemptTimeoutLayer::new(seconds(attempt)).covering_body();
        let service = DeadlineLayer::new(seconds(deadline)).covering_body();
        let response = service.layer(attempt.layer(script.clone())).oneshot(get()).await?;
        assert_eq!(read(response).await, Err(kind));
        assert_eq!(script.elapsed(), seconds(at));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_covered_is_clipped_by_a_deadline_that_covers_nothing() -> Tested {
    let script = stalling();
    let attempt = AttemptTimeoutLayer::new(seconds(60)).covering_body().layer(script.clone());
    let response = DeadlineLayer::new(seconds(2)).layer(attempt).oneshot(get()).await?;
    assert_eq!(read(response).await, Err(ErrorKind::Deadline));
    assert_eq!(script.elapsed(), seconds(2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn trailers_are_covered_and_come_through() -> Tested {
    let trailers = |pause| {
        Script::of([Answer::status(200).body([
            Beat::data("a"),
            Beat::Pause(pause),
            Beat::trailer("grpc-status", "0"),
        ])])
    };
    let layer = AttemptTimeoutLayer::new(seconds(2)).covering_body();
    let body =
        layer.layer(trailers(seconds(1))).oneshot(get()).await?.into_body().collect().await?;
    assert!(body.trailers().is_some_and(|it| it.contains_key("grpc-status")));
    let late = layer.layer(trailers(seconds(3))).oneshot(get()).await?;
    assert_eq!(read(late).await, Err(ErrorKind::AttemptTimeout));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_of_its_own_error_keeps_it() -> Tested {
    let script = Script::of([Answer::status(200).body([Beat::data("a"), Beat::Break])]);
    let service = AttemptTimeoutLayer::new(seconds(2)).covering_body().layer(script);
    let error = service.oneshot(get()).await?.into_body().collect().await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_at_its_end_is_never_late() -> Tested {
    for answer in [Answer::status(204), Answer::status(200).body([Beat::data("all")])] {
        let mut service =
            DeadlineLayer::new(seconds(1)).covering_body().layer(Script::of([answer]));
        let service =
            ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(&mut service);
        let response = service.await?.call(get()).await?;
        sleep(seconds(60)).await;
        assert!(read(response).await.is_ok());
    }
    Ok(())
}

// TO-10
#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_short_below_is_not_repeated_and_blames_nobody() -> Tested {
    let script = Script::of([Answer::hang()]);
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let below = DeadlineLayer::new(millis(50)).layer(script.clone());
    let retry = RetryLayer::new(Policy::default());
    let service = retry.layer(breaker.layer(below));
    for calls in 1..=60 {
        let error = service.clone().oneshot(get()).await.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (ErrorKind::Deadline, Fault::Cancelled));
        assert_eq!((script.count(), script.open()), (calls, 0));
    }
    assert_eq!(breaker.handle().transitions(), 0);
    let tokens = retry.budget().map_or(0.0, |budget| budget.tokens());
    assert!(tokens > 1.99, "{tokens} are left of 2");
    Ok(())
}
