//! What our own layers refuse below a retry.

use std::io;

use abate::{BreakerState, CircuitBreakerLayer, ConcurrencyLimitLayer, Error, ErrorKind};
use abate::{Policy, Report, RetryLayer, StopReason, TriedResult};
use abate_tests::events::Events;
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use http::StatusCode;
use tokio::time::{Instant, sleep};
use tower::timeout::TimeoutLayer;
use tower::util::MapErrLayer;
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, millis, retries, seconds, waits};

/// A breaker that opened just now, and for at least a second.
async fn open() -> Result<CircuitBreakerLayer, BoxError> {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let service = breaker.layer(Script::of([Answer::status(503)]));
    while breaker.handle().state() == BreakerState::Closed {
        service.clone().oneshot(get()).await?;
        sleep(millis(100)).await;
    }
    Ok(breaker)
}

// CB-10
#[tokio::test(start_paused = true)]
async fn an_open_breaker_ends_a_call_at_once_and_costs_nothing() -> Tested {
    let (script, breaker) = (Script::of([Answer::status(200)]), open().await?);
    let layer = RetryLayer::new(Policy::builder().with_budget_floor(0.0).build()?);
    let service = layer.layer(breaker.layer(script.clone()));
    let start = Instant::now();
    for _ in 0..1_000 {
        let error = service.clone().oneshot(get()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BreakerOpen);
        assert_eq!(error.attempts(), 0, "a refusal is no attempt");
        assert!(error.retry_at() > Some(start.into_std()));
        assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Refused));
    }
    assert_eq!((script.count(), start.elapsed()), (0, millis(0)));
    assert_eq!(layer.budget().map(|budget| budget.tokens()), Some(2.5));
    assert_eq!(layer.budget().map(|budget| budget.pace()), Some(0.0), "nor is it a call");

    sleep(seconds(2)).await;
    for _ in 0..3 {
        assert_eq!(service.clone().oneshot(get()).await?.status(), 200);
    }
    assert_eq!(breaker.handle().state(), BreakerState::Closed, "the probes found it well");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_between_attempts_ends_the_call_with_what_went_before() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let script = Script::of([Answer::status(503)]);
    let layer = RetryLayer::new(waits(seconds(3)).with_budget_floor(0.0).build()?);
    let call = tokio::spawn(layer.layer(breaker.layer(script.clone())).oneshot(get()));
    let others = breaker.layer(script.clone());
    while breaker.handle().state() == BreakerState::Closed {
        others.clone().oneshot(get()).await?;
        sleep(millis(100)).await;
    }
    let (sent, opened) = (script.count(), script.elapsed());
    assert!(opened < seconds(3));
    let error = call.await?.unwrap_err();
    assert_eq!(script.elapsed().as_secs(), 3);
    assert_eq!(script.count(), sent, "the retry found it open");
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::BreakerOpen, 1));
    let told = error.report().cloned().unwrap_or_default();
    assert_eq!(told.stop_reason(), Some(StopReason::Refused));
    let earlier = TriedResult::Status(StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(told.tried().iter().map(|it| it.result()).collect::<Vec<_>>(), [earlier]);
    let left = layer.budget().unwrap().tokens();
    assert!(left > 2.0 * (-0.3_f64).exp() - 0.1, "the token came back: {left}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_reached_ends_a_call() -> Tested {
    let script = Script::of([Answer::status(200).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.layer(script.clone());
    let held = limit.clone().oneshot(get()).await?;
    let layer = RetryLayer::new(Policy::default());
    let start = Instant::now();
    let error = layer.layer(limit).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::LimitReached, 0));
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Refused));
    assert_eq!((script.count(), start.elapsed()), (1, seconds(1)), "one wait, and no retry");
    let tokens = layer.budget().map_or(0.0, |budget| budget.tokens());
    assert!((tokens - 2.0).abs() < 1e-6, "{tokens}");
    drop(held);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_known_below_a_foreign_layer_too() -> Tested {
    let (script, breaker) = (Script::of([Answer::status(200)]), open().await?);
    let foreign = TimeoutLayer::new(seconds(9)).layer(breaker.layer(script.clone()));
    let wrapped = MapErrLayer::new(io::Error::other::<BoxError>).layer(foreign);
    let events = Events::listen();
    let start = Instant::now();
    let error = retries(3)?.layer(wrapped).oneshot(get()).await.unwrap_err();
    assert_eq!((error.attempts(), script.count()), (0, 0));
    assert_eq!(start.elapsed(), millis(0));
    let ours = Error::find(std::error::Error::source(&error).unwrap()).unwrap();
    assert_eq!(ours.kind(), ErrorKind::BreakerOpen);
    assert_eq!(events.messages(), ["refused: breaker", "stopped retrying"]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_never_got_its_turn_gives_its_token_back() -> Tested {
    let busy = Answer::status(503).header("retry-after", "1");
    let script = Script::of([busy, Answer::status(200).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.layer(script.clone());
    let layer = RetryLayer::new(Policy::default());
    let call = tokio::spawn(layer.layer(limit.clone()).oneshot(get()));
    sleep(millis(500)).await;
    let held = limit.oneshot(get()).await?;
    // Others who are sent meanwhile, on the same thread, are no sign of this one.
    let others = retries(1)?.layer(Script::of([Answer::status(200)]));
    while !call.is_finished() {
        others.clone().oneshot(get()).await?;
        sleep(millis(50)).await;
    }
    let error = call.await?.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::LimitReached, 1));
    let tokens = layer.budget().map_or(0.0, |budget| budget.tokens());
    assert!(tokens > 1.9, "{tokens} are left of 2");
    assert_eq!(script.count(), 2);
    drop(held);
    Ok(())
}
