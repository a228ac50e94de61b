//! Calls that are slow.

use abate::{BreakerState, CircuitBreakerLayer, ConcurrencyLimitLayer, Policy};
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, due, get, millis, seconds};

/// Opens when more than half of the calls take 100 ms.
fn wary() -> Result<CircuitBreakerLayer, BoxError> {
    let policy = Policy::builder().with_breaker_slow_calls(millis(100), 0.5).build()?;
    Ok(CircuitBreakerLayer::new(policy).with_seed(1))
}

/// Ten calls a second for ten seconds, or until it opens: whether it did.
async fn opens(breaker: &CircuitBreakerLayer, script: Script) -> bool {
    let service = breaker.layer(script);
    for _ in 0..100 {
        drop(tokio::spawn(service.clone().oneshot(get())));
        sleep(millis(100)).await;
        if breaker.handle().state() == BreakerState::Open {
            return true;
        }
    }
    false
}

fn taking(took: u64) -> Script {
    Script::of([Answer::status(200).after(millis(took))])
}

#[tokio::test(start_paused = true)]
async fn too_many_slow_answers_open_it_although_all_succeed() -> Tested {
    assert!(opens(&wary()?, taking(100)).await);
    assert!(opens(&wary()?, taking(5_000)).await);
    assert!(!opens(&wary()?, taking(98)).await);
    let every = |one: usize| {
        Script::by(move |n| Answer::status(200).after(millis(if n % one == 0 { 200 } else { 0 })))
    };
    assert!(!opens(&wary()?, every(3)).await, "a third is not above a half");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_slow_unless_the_policy_says_so() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default());
    assert!(!opens(&breaker, taking(9_000)).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_slow_is_not_a_slow_call() -> Tested {
    let breaker = wary()?;
    let body = [Beat::Pause(seconds(1)), Beat::data("done")];
    let service = breaker.layer(Script::of([Answer::status(200).body(body)]));
    for _ in 0..30 {
        let response = service.clone().oneshot(get()).await?;
        http_body_util::BodyExt::collect(response.into_body()).await?;
    }
    assert_eq!(breaker.handle().transitions(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn time_in_our_own_queue_is_not_slow() -> Tested {
    let breaker = wary()?;
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(60)).layer(taking(90));
    let service = breaker.layer(limit);
    let calls = (0..100).map(|_| tokio::spawn(service.clone().oneshot(get())));
    for call in calls.collect::<Vec<_>>() {
        assert_eq!(call.await??.status(), 200);
    }
    assert_eq!(breaker.handle().transitions(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn slow_probes_open_it_again() -> Tested {
    let breaker = wary()?;
    due(&breaker).await;
    let service = breaker.layer(taking(150));
    for state in [BreakerState::HalfOpen, BreakerState::Open] {
        service.clone().oneshot(get()).await?;
        assert_eq!(breaker.handle().state(), state);
    }
    Ok(())
}

// CB-06
#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_on_a_slow_call_blames_the_dependency() -> Tested {
    for (patience, opens) in [(90, false), (110, true)] {
        let breaker = wary()?;
        let service = breaker.layer(Script::of([Answer::hang()]));
        for _ in 0..30 {
            let given_up = timeout(millis(patience), service.clone().oneshot(get())).await;
            assert!(!matches!(given_up, Ok(Ok(_))));
            sleep(millis(100)).await;
        }
        assert_eq!(breaker.handle().transitions() > 0, opens, "after {patience} ms");
    }
    Ok(())
}
