//! What is refused, as what; and what comes back when a repeat is never sent.

use std::time::Duration;

use abate::decisions::budget::{Budget, Costs, Earn, Grant, Rules};
use abate::decisions::classify::Transient;
use abate::{CircuitBreakerLayer, ConcurrencyLimitLayer, Deadline, DeadlineLayer, ErrorKind};
use abate::{Fault, Policy, Ratio, RetryBudgetLayer, StopReason};
use abate_tests::events::Events;
use abate_tests::play::Beat;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, ServiceExt};

use super::{Tested, attempt, down, earn, poor, spent};

/// Rich in tokens, at a pace of two retries a second and one at once.
async fn paced() -> Result<RetryBudgetLayer, tower::BoxError> {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(2.0).build()?;
    let layer = RetryBudgetLayer::new(policy);
    let tokens = earn(&layer, 100).await?;
    assert!(tokens > 20.0, "{tokens}");
    // The calls themselves are forgotten, and most of what they earned is not.
    sleep(Duration::from_secs(8)).await;
    Ok(layer)
}

#[tokio::test(start_paused = true)]
async fn an_empty_budget_refuses_at_once_by_a_local_fault() -> Tested {
    let layer = RetryBudgetLayer::new(poor()?);
    let script = down();
    let service = layer.layer(script.clone());
    service.clone().oneshot(attempt(2)).await?;
    let events = Events::listen();
    let error = service.oneshot(attempt(2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetryRefused(StopReason::Budget));
    assert_eq!((error.fault(), error.attempts()), (Fault::Local, 0));
    assert_eq!((script.count(), script.elapsed()), (1, Duration::ZERO));
    assert_eq!(events.messages(), ["refused"]);
    Ok(())
}

// BU-12
#[tokio::test(start_paused = true)]
async fn repeats_wait_for_their_slot_and_those_who_would_wait_too_long_are_refused() -> Tested {
    let layer = paced().await?;
    let script = Script::of([Answer::status(404)]);
    let service = layer.layer(script.clone());
    let start = script.elapsed();
    let results = join_all((0..50).map(|_| service.clone().oneshot(attempt(2)))).await;
    let refused: Vec<_> = results.iter().filter_map(|it| it.as_ref().err()).collect();
    assert!(refused.iter().all(|it| it.kind() == ErrorKind::RetryRefused(StopReason::Pace)));
    let sent: Vec<_> = script.arrived().iter().map(|it| (it.at - start).as_millis()).collect();
    // The level may be one above zero at once, and drains by two a second: 0, 0.5 and 1 s.
    assert_eq!((refused.len(), sent.len()), (46, 4), "{sent:?}");
    let due = [0, 0, 500, 1_000];
    assert!(sent.iter().zip(due).all(|(sent, due)| sent.abs_diff(due) < 30), "{sent:?}");
    Ok(())
}

// BU-12
#[tokio::test(start_paused = true)]
async fn however_many_wait_no_second_sees_more_than_the_pace_and_the_burst() -> Tested {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(10.0).build()?;
    let layer = RetryBudgetLayer::new(policy);
    let script = down();
    let service = layer.layer(script.clone());
    for _ in 0..200 {
        let waiters = (0..200).map(|_| timeout(Duration::MAX, service.clone().oneshot(attempt(2))));
        tokio::spawn(join_all(waiters));
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(2)).await;
    let sent: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
    assert!(sent.len() > 190, "{} in twenty seconds", sent.len());
    for (n, at) in sent.iter().enumerate() {
        let within = sent[n..].iter().filter(|it| **it - *at < Duration::from_secs(1)).count();
        assert!(within <= 10 + 2, "{within} from {at:?} on");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_slot_too_late_for_the_deadline_is_refused_as_that() -> Tested {
    let layer = paced().await?;
    let service = layer.layer(down());
    for _ in 0..2 {
        service.clone().oneshot(attempt(2)).await?;
    }
    let before = layer.budget().tokens();
    let refused = ErrorKind::RetryRefused(StopReason::Deadline);
    let short = Duration::from_millis(300);
    let above = DeadlineLayer::new(short).layer(service.clone());
    assert_eq!(above.oneshot(attempt(2)).await.unwrap_err().kind(), refused);
    let mut own = attempt(2);
    own.extensions_mut().insert(Deadline::after(Instant::now().into_std(), short));
    assert_eq!(service.oneshot(own).await.unwrap_err().kind(), refused);
    assert_eq!(spent(&layer.budget(), before), 0.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_is_dropped_while_it_is_held_gives_back_token_and_slot() -> Tested {
    let layer = paced().await?;
    let script = down();
    let service = layer.layer(script.clone());
    for _ in 0..2 {
        service.clone().oneshot(attempt(2)).await?;
    }
    let before = layer.budget().tokens();
    for _ in 0..100 {
        let held = timeout(Duration::ZERO, service.clone().oneshot(attempt(2))).await;
        assert!(held.is_err(), "held, and not refused: the slots came back");
    }
    assert!(spent(&layer.budget(), before) < 0.1);
    assert_eq!(script.count(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_a_layer_below_refuses_gives_its_token_back() -> Tested {
    let layer = RetryBudgetLayer::new(poor()?);
    let breaker = CircuitBreakerLayer::new(Policy::default());
    breaker.handle().force_open();
    let before = layer.budget().tokens();
    for _ in 0..20 {
        let result = layer.layer(breaker.layer(down())).oneshot(attempt(2)).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BreakerOpen);
    }
    assert_eq!(spent(&layer.budget(), before), 0.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_never_gets_its_turn_below_gives_its_token_back() -> Tested {
    let layer = RetryBudgetLayer::new(poor()?);
    let script = Script::of([Answer::status(404).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.layer(script.clone());
    let busy = limit.clone().oneshot(get()).await?;
    let before = layer.budget().tokens();
    let service = layer.layer(limit);
    let result = service.clone().oneshot(attempt(2)).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::LimitReached);
    let given_up = timeout(Duration::from_millis(1), service.clone().oneshot(attempt(2))).await;
    assert!(given_up.is_err());
    let lost = spent(&layer.budget(), before);
    assert!(lost < 0.2, "{lost}: nothing but what a second fades");
    drop(busy);
    service.oneshot(attempt(2)).await?;
    // And a 404 earns a fifth, as anything does that waiting does not change.
    assert!(spent(&layer.budget(), before) >= 0.8, "it was sent");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_was_sent_and_given_up_is_paid_for() -> Tested {
    let layer = RetryBudgetLayer::new(poor()?);
    let before = layer.budget().tokens();
    let service = layer.layer(Script::of([Answer::hang()]));
    assert!(timeout(Duration::from_millis(1), service.oneshot(attempt(2))).await.is_err());
    assert!(spent(&layer.budget(), before) >= 1.0);
    Ok(())
}

// BU-06
#[test]
fn earning_per_call_grants_the_share_of_calls_whichever_of_them_fails_first() -> Tested {
    let now = std::time::Instant::now();
    let (earn, ratio, costs) = (Earn::PerCall, Ratio::new(0.5)?, Costs::ONE);
    let rules = Rules { ratio, earn, costs, floor: 0.0, start: 0.0, burst: u32::MAX };
    for sent_before_the_first_failure in 1..=6 {
        let budget = Budget::new(rules, now);
        let ask = || budget.grant(now, Duration::ZERO, Duration::MAX, Transient::Server);
        let mut granted = 0;
        for call in 1..=6 {
            budget.count_call(now);
            if call >= sent_before_the_first_failure {
                granted += usize::from(ask().map(Grant::sent).is_ok());
            }
        }
        for _ in 1..sent_before_the_first_failure {
            granted += usize::from(ask().map(Grant::sent).is_ok());
        }
        assert_eq!(granted, 3, "{sent_before_the_first_failure} sent before the first failure");
    }
    Ok(())
}
