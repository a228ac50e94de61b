//! What a circuit breaker holds against a dependency.

use std::io;
use std::time::Duration;

use abate::{AttemptTimeoutLayer, BreakerState, CircuitBreakerLayer, ConcurrencyLimitLayer};
use abate::{DeadlineLayer, ErrorKind, Policy};
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use futures_util::future::join_all;
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, kind, millis, seconds};

/// A breaker that the next failure opens, since nine in a row went before; so long before that
/// they are too old to count towards a rate.
async fn at_the_brink() -> Result<CircuitBreakerLayer, BoxError> {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let service = breaker.layer(Script::of([Answer::status(503)]));
    for _ in 0..9 {
        service.clone().oneshot(get()).await?;
        sleep(millis(300)).await;
    }
    sleep(seconds(6)).await;
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    Ok(breaker)
}

/// Whether what has just come to an end was a failure; it leaves the breaker where it stands.
fn failed(breaker: &CircuitBreakerLayer) -> bool {
    breaker.handle().state() == BreakerState::Open
}

/// Whether the row of failures goes on after something that was none, so that it was neutral.
async fn is_still_at_the_brink(breaker: &CircuitBreakerLayer) -> Result<bool, BoxError> {
    let before = failed(breaker);
    breaker.layer(Script::of([Answer::status(503)])).oneshot(get()).await?;
    Ok(!before && failed(breaker))
}

async fn verdict(answer: Answer) -> Result<(bool, bool), BoxError> {
    let breaker = at_the_brink().await?;
    drop(breaker.layer(Script::of([answer])).oneshot(get()).await);
    let failure = failed(&breaker);
    Ok((failure, !failure && is_still_at_the_brink(&breaker).await?))
}

// CL-01, CL-08
#[tokio::test(start_paused = true)]
async fn trouble_is_a_failure_and_what_the_request_is_to_blame_for_is_neutral() -> Tested {
    const FAILURE: (bool, bool) = (true, false);
    const NEUTRAL: (bool, bool) = (false, true);
    const SUCCESS: (bool, bool) = (false, false);
    for code in [500, 502, 503, 504] {
        assert_eq!(verdict(Answer::status(code)).await?, FAILURE, "{code}");
    }
    for code in [400, 401, 403, 404, 408, 409, 410, 417, 422, 425, 429, 501, 505, 511, 529, 599] {
        assert_eq!(verdict(Answer::status(code)).await?, NEUTRAL, "{code}");
    }
    for code in [200, 204, 302, 304] {
        assert_eq!(verdict(Answer::status(code)).await?, SUCCESS, "{code}");
    }
    for error in [io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionReset] {
        assert_eq!(verdict(Answer::fail(error)).await?, FAILURE, "{error}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_times_out_is_a_failure() -> Tested {
    let breaker = at_the_brink().await?;
    let below = AttemptTimeoutLayer::new(millis(10)).layer(Script::of([Answer::hang()]));
    assert_eq!(kind(&breaker.layer(below).oneshot(get()).await), Some(ErrorKind::AttemptTimeout));
    assert!(failed(&breaker));
    Ok(())
}

// BR-10
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_one_failure_and_one_that_is_dropped_is_none() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let broken = Answer::status(404).body([Beat::data("no"), Beat::Break]);
    let service = breaker.layer(Script::of([broken]));
    for calls in 1..=10 {
        let body = service.clone().oneshot(get()).await?.into_body();
        sleep(millis(150)).await;
        drop(service.clone().oneshot(get()).await?);
        assert!(!failed(&breaker), "{calls}");
        assert!(body.collect().await.is_err());
        sleep(millis(150)).await;
    }
    assert!(failed(&breaker), "the tenth in a row");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_after_the_breaker_moved_on_is_nothing() -> Tested {
    let breaker = at_the_brink().await?;
    let broken = Answer::status(404).body([Beat::Break]);
    let body = breaker.layer(Script::of([broken])).oneshot(get()).await?.into_body();
    assert!(is_still_at_the_brink(&breaker).await?);
    sleep(seconds(3)).await;
    let probes = breaker.layer(Script::of([Answer::status(200)]));
    probes.clone().oneshot(get()).await?;
    assert!(body.collect().await.is_err());
    probes.oneshot(get()).await?;
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    Ok(())
}

/// The verdict on a call that is given up `after` so long, behind `queued` of waiting for a turn.
async fn given_up(after: Duration, queued: Duration) -> Result<bool, BoxError> {
    let breaker = at_the_brink().await?;
    let blocker = Answer::status(200).body([Beat::Pause(queued), Beat::data("done")]);
    let script = Script::of([blocker, Answer::hang()]);
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(60)).layer(script.clone());
    let held = limit.clone().oneshot(get()).await?;
    let reader = tokio::spawn(held.into_body().collect());
    if queued.is_zero() {
        reader.await??;
    }
    let call = breaker.layer(limit).oneshot(get());
    assert!(timeout(after, call).await.is_err());
    assert_eq!(script.count(), if after > queued { 2 } else { 1 });
    let failure = failed(&breaker);
    assert!(failure || is_still_at_the_brink(&breaker).await?, "neutral, if no failure");
    Ok(failure)
}

// CB-06
#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_blames_only_what_took_half_the_attempt_timeout() -> Tested {
    assert!(!given_up(millis(4_990), millis(0)).await?);
    assert!(given_up(millis(5_010), millis(0)).await?);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_turn_is_not_held_against_the_dependency() -> Tested {
    assert!(!given_up(seconds(9), seconds(60)).await?, "never sent");
    assert!(!given_up(seconds(9), seconds(6)).await?, "sent, and three seconds under way");
    assert!(given_up(seconds(9), seconds(3)).await?, "sent, and six seconds under way");
    Ok(())
}

// CB-06
#[tokio::test(start_paused = true)]
async fn a_hundred_who_give_up_soon_open_nothing() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let script = Script::by(|n| if n < 400 { Answer::hang() } else { Answer::status(200) });
    let service = breaker.layer(script);
    for _ in 0..4 {
        let calls = (0..100).map(|n| timeout(millis(10 * n + 1), service.clone().oneshot(get())));
        assert!(join_all(calls).await.iter().all(Result::is_err));
    }
    assert_eq!(service.oneshot(get()).await?.status(), 200);
    assert_eq!(breaker.handle().transitions(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_cuts_an_attempt_short_is_like_a_caller_who_gives_up() -> Tested {
    for (deadline, failure) in [(4, false), (6, true)] {
        let breaker = at_the_brink().await?;
        let below = AttemptTimeoutLayer::new(seconds(10)).layer(Script::of([Answer::hang()]));
        let service = DeadlineLayer::new(seconds(deadline)).layer(breaker.layer(below));
        assert_eq!(kind(&service.oneshot(get()).await), Some(ErrorKind::Deadline));
        assert_eq!(failed(&breaker), failure, "after {deadline} s");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_our_own_is_neutral() -> Tested {
    let breaker = at_the_brink().await?;
    let script = Script::of([Answer::status(200).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.layer(script);
    let held = limit.clone().oneshot(get()).await?;
    let result = breaker.layer(limit).oneshot(get()).await;
    assert_eq!(kind(&result), Some(ErrorKind::LimitReached));
    assert!(is_still_at_the_brink(&breaker).await?);
    drop(held);
    Ok(())
}
