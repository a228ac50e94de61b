//! How a repeat is known, and who pays for it.

use abate::{Attempt, BudgetHandle, ErrorKind, Policy, RetryBudgetLayer, RetryLayer, StopReason};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Arrived, Script};
use http::{HeaderName, HeaderValue};
use tower::retry::RetryLayer as TowerRetryLayer;
use tower::{Layer, ServiceExt};

use super::{Tested, TowerRetries, attempt, down, earn, poor, spent};

fn once_down() -> Script {
    Script::of([Answer::status(503), Answer::status(404)])
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_our_own_that_the_same_budget_paid_for_above_is_paid_once() -> Tested {
    let policy = Policy::builder().with_budget_floor(0.0).build()?;
    let budget = BudgetHandle::new(&policy);
    let below = RetryBudgetLayer::new(&policy).with_budget(budget.clone());
    let above = RetryLayer::new(policy).with_budget(budget.clone()).with_seed(1);
    let before = budget.tokens();
    let script = down();
    above.layer(below.layer(script.clone())).oneshot(get()).await?;
    assert_eq!(script.count(), 3, "two tokens pay for two retries");
    let spent = spent(&budget, before);
    assert!((2.0..2.05).contains(&spent), "{spent}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_success_below_our_own_retry_earns_once_for_the_same_budget() -> Tested {
    let policy = Policy::builder().with_budget_floor(0.0).with_budget_ratio(0.5).build()?;
    let budget = BudgetHandle::new(&policy);
    let below = RetryBudgetLayer::new(&policy).with_budget(budget.clone());
    let above = RetryLayer::new(policy).with_budget(budget.clone());
    let before = budget.tokens();
    let service = above.layer(below.layer(super::up()));
    for _ in 0..10 {
        service.clone().oneshot(get()).await?;
    }
    assert_eq!(spent(&budget, before), -5.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_budget_pays_for_the_same_repeat_as_well() -> Tested {
    let policy = Policy::builder().with_budget_floor(0.0).build()?;
    let below = RetryBudgetLayer::new(&policy);
    let above = RetryLayer::new(policy).with_seed(1);
    let (upper, lower) = (above.budget().unwrap(), below.budget());
    let before = (upper.tokens(), lower.tokens());
    let script = once_down();
    above.layer(below.layer(script.clone())).oneshot(get()).await?;
    assert_eq!(script.count(), 2);
    // A success earns a fifth on either.
    let spent = (spent(&upper, before.0), spent(&lower, before.1));
    assert!((0.79..0.85).contains(&spent.0), "{spent:?}");
    assert!((0.79..0.85).contains(&spent.1), "{spent:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn another_budget_that_is_empty_ends_the_call_of_our_own_retry() -> Tested {
    let below = RetryBudgetLayer::new(poor()?);
    let above = RetryLayer::new(Policy::default()).without_budget().with_seed(1);
    let script = down();
    let service = above.layer(below.layer(script.clone()));
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetryRefused(StopReason::Budget));
    assert_eq!((script.count(), error.attempts()), (2, 2), "and is no attempt");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_above_that_has_no_budget_pays_here() -> Tested {
    let below = RetryBudgetLayer::new(Policy::builder().with_budget_floor(0.0).build()?);
    let above = RetryLayer::new(Policy::default()).without_budget().with_seed(1);
    let before = below.budget().tokens();
    above.layer(below.layer(down())).oneshot(get()).await?;
    let spent = spent(&below.budget(), before);
    assert!((2.0..2.05).contains(&spent), "{spent}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_line_in_a_policy_for_towers_retry_puts_it_on_the_budget() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let script = down();
    let tower = TowerRetryLayer::new(TowerRetries::MARKING);
    let result = tower.layer(budget.layer(script.clone())).oneshot(get()).await;
    let kind = result.unwrap_err().kind();
    assert_eq!(kind, ErrorKind::RetryRefused(StopReason::Budget), "the third attempt");
    assert_eq!(script.count(), 2);
    let number = |it: &Arrived| it.extensions.get().copied().map(Attempt::number);
    assert_eq!(script.arrived().iter().map(number).collect::<Vec<_>>(), [None, Some(2)]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_loop_of_the_application_marks_by_hand() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let script = down();
    let service = budget.layer(script.clone());
    let mut refused = None;
    for number in 1..=4 {
        match service.clone().oneshot(attempt(number)).await {
            Ok(response) => assert_eq!(response.status(), 503),
            Err(error) => {
                refused = Some((number, error.kind()));
                break;
            }
        }
    }
    assert_eq!(refused, Some((3, ErrorKind::RetryRefused(StopReason::Budget))));
    assert_eq!(script.count(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_header_that_the_user_names_marks_a_repeat() -> Tested {
    let named = HeaderName::from_static("x-attempt");
    let budget = RetryBudgetLayer::new(poor()?).with_attempt_header(named.clone());
    let service = budget.layer(down());
    let send = async |value: &'static str| {
        let mut request = get();
        request.headers_mut().insert(named.clone(), HeaderValue::from_static(value));
        service.clone().oneshot(request).await.map_err(|error| error.kind())
    };
    for first in ["1", "0", "soon", "", "-3", "2.0"] {
        let before = budget.budget().tokens();
        assert!(send(first).await.is_ok());
        assert_eq!(spent(&budget.budget(), before), 0.0, "{first:?} says that it is no repeat");
    }
    assert!(send(" 2 ").await.is_ok());
    assert_eq!(send("3").await.unwrap_err(), ErrorKind::RetryRefused(StopReason::Budget));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_header_that_nobody_named_is_no_mark() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let service = budget.layer(down());
    for _ in 0..10 {
        let mut request = get();
        request.headers_mut().insert("x-attempt", HeaderValue::from_static("2"));
        assert_eq!(service.clone().oneshot(request).await?.status(), 503);
    }
    assert_eq!(budget.budget().tokens(), RetryBudgetLayer::new(poor()?).budget().tokens());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn extensions_prevail_over_the_header() -> Tested {
    let named = HeaderName::from_static("x-attempt");
    let budget = RetryBudgetLayer::new(poor()?).with_attempt_header(named.clone());
    let mut request = attempt(1);
    request.headers_mut().insert(named, HeaderValue::from_static("2"));
    let before = budget.budget().tokens();
    budget.layer(down()).oneshot(request).await?;
    assert_eq!(spent(&budget.budget(), before), 0.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_marks_it_earns_and_refuses_nothing() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let before = budget.budget().tokens();
    let script = down();
    let tower = TowerRetryLayer::new(TowerRetries::SILENT);
    for _ in 0..10 {
        let service = tower.layer(budget.layer(script.clone()));
        assert_eq!(service.oneshot(get()).await?.status(), 503);
    }
    assert_eq!(script.count(), 30);
    assert_eq!(spent(&budget.budget(), before), 0.0);
    assert!((earn(&budget, 10).await? - before - 2.0).abs() < 1e-6);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_waiting_does_not_change_earns_like_a_success() -> Tested {
    for (code, earns) in [(200, 0.2), (302, 0.2), (404, 0.2), (422, 0.2), (429, 0.0), (503, 0.0)] {
        let budget = RetryBudgetLayer::new(poor()?);
        let before = budget.budget().tokens();
        budget.layer(Script::of([Answer::status(code)])).oneshot(get()).await?;
        assert_eq!(spent(&budget.budget(), before), -earns, "{code}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn layers_and_services_that_are_clones_share_a_budget_and_others_do_not() -> Tested {
    let (one, other) = (RetryBudgetLayer::new(poor()?), RetryBudgetLayer::new(poor()?));
    assert!(one.layer(down()).oneshot(attempt(2)).await.is_ok());
    assert!(one.clone().layer(down()).oneshot(attempt(2)).await.is_err());
    assert!(other.layer(down()).oneshot(attempt(2)).await.is_ok());
    Ok(())
}
