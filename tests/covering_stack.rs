//! Bodies that a whole stack covers.

use abate::{ErrorKind, Hold, Policy, Stack};
use abate_tests::play::Beat;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, millis, read, seconds, stalling};

/// Attempts of two seconds within calls of three, one at a time.
fn stack() -> Result<Stack, BoxError> {
    let policy = Policy::builder()
        .with_attempt_timeout(seconds(2))
        .with_total_timeout(seconds(3))
        .with_concurrency(1);
    Ok(Stack::new(policy.build()?).with_seed(1))
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_stack_that_covers_bodies_ends_one_that_stalls_and_frees_its_permit() -> Tested {
    let (stack, script) = (stack()?.covering_body(), stalling());
    let response = stack.layer(script.clone()).oneshot(get()).await?;
    assert_eq!(stack.limit().in_use(), 1);
    assert_eq!(read(response).await, Err(ErrorKind::AttemptTimeout));
    assert_eq!((stack.limit().in_use(), script.open()), (0, 0));
    assert_eq!((script.elapsed(), script.count()), (seconds(2), 1));
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_stack_covers_nothing_by_itself() -> Tested {
    let (stack, script) = (stack()?, stalling());
    let mut body = stack.layer(script.clone()).oneshot(get()).await?.into_body();
    assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
    assert!(timeout(seconds(3_600), body.frame()).await.is_err());
    assert_eq!(stack.limit().in_use(), 1);
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_retry_in_a_stack_has_the_rest_of_the_time_for_its_body() -> Tested {
    let slow = Answer::status(503).after(millis(1_500));
    let stalls = Answer::status(200).body([Beat::data("ten bytes!"), Beat::Hang]);
    let script = Script::of([slow, stalls]);
    let stack = stack()?.covering_body();
    let response = stack.layer(script.clone()).oneshot(get()).await?;
    assert_eq!(script.count(), 2);
    assert_eq!(read(response).await, Err(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), stack.limit().in_use()), (seconds(3), 0));
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn bodies_that_stall_open_the_breaker_of_a_stack() -> Tested {
    let policy = Policy::builder().with_attempt_timeout(seconds(1)).build()?;
    let stack = Stack::new(policy).with_seed(1).covering_body();
    let service = stack.layer(stalling());
    for _ in 0..50 {
        let service = service.clone();
        tokio::spawn(async move {
            let body = service.oneshot(get()).await?.into_body();
            body.collect().await
        });
        sleep(millis(100)).await;
    }
    assert!(stack.breaker().transitions() > 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_stack_holds_to_the_head_it_covers_to_the_end() -> Tested {
    let stack = stack()?.covering_body().with_hold(Hold::Head);
    let response = stack.layer(stalling()).oneshot(get()).await?;
    assert_eq!(stack.limit().in_use(), 0);
    assert_eq!(read(response).await, Err(ErrorKind::AttemptTimeout));
    Ok(())
}
