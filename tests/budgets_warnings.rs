//! The warning that nobody marks repeats, so that the budget limits nothing.

use abate::{Policy, RetryBudgetLayer, RetryLayer};
use abate_tests::events::Events;
use abate_tests::rig::get;
use tower::retry::RetryLayer as TowerRetryLayer;
use tower::{Layer, ServiceExt};
use tracing::Level;

use super::{Tested, TowerRetries, attempt, down, poor, up};

fn warnings(events: &Events) -> usize {
    events.take().iter().filter(|event| event.level == Level::WARN).count()
}

#[tokio::test(start_paused = true)]
async fn more_than_twenty_failures_without_a_mark_are_told_once() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let events = Events::listen();
    let service = budget.layer(down());
    for _ in 0..20 {
        service.clone().oneshot(get()).await?;
    }
    assert_eq!(warnings(&events), 0);
    service.clone().oneshot(get()).await?;
    assert_eq!(warnings(&events), 1);
    for _ in 0..1_000 {
        service.clone().oneshot(get()).await?;
        budget.clone().layer(down()).oneshot(get()).await?;
    }
    assert_eq!(warnings(&events), 0, "and never again");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn success_and_what_is_not_retried_are_no_reason_to_warn() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let events = Events::listen();
    for _ in 0..100 {
        budget.layer(up()).oneshot(get()).await?;
    }
    assert_eq!(warnings(&events), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn where_marks_come_nothing_is_told_however_much_fails() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let events = Events::listen();
    let tower = TowerRetryLayer::new(TowerRetries::MARKING);
    for _ in 0..100 {
        let _ = tower.layer(budget.layer(down())).oneshot(get()).await;
    }
    let _ = budget.layer(down()).oneshot(attempt(2)).await;
    assert_eq!(warnings(&events), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn below_our_own_retry_nothing_is_told() -> Tested {
    let budget = RetryBudgetLayer::new(poor()?);
    let events = Events::listen();
    let above = RetryLayer::new(Policy::default()).with_budget(budget.budget());
    for _ in 0..100 {
        let _ = above.layer(budget.layer(down())).oneshot(get()).await;
    }
    assert_eq!(warnings(&events), 0);
    Ok(())
}
