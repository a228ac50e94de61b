//! All layers together.

use std::io;

use abate::{BreakerState, BudgetHandle, Error, ErrorKind, Policy, Pushback, Report, Stack};
use abate::{StackService, StopReason};
use abate_tests::events::Events;
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, get_within, kind, millis, seconds};

fn limited(max: usize) -> Result<Stack, BoxError> {
    Ok(Stack::new(Policy::builder().with_concurrency(max).build()?).with_seed(1))
}

/// Fails until the breaker of `stack` is open.
async fn open(stack: &Stack) -> Result<(), Error> {
    let service = stack.layer(Script::of([Answer::status(503)]));
    while stack.breaker().state() == BreakerState::Closed {
        service.clone().oneshot(get()).await?;
        sleep(millis(100)).await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_succeeds_passes_through_whole() -> Tested {
    let body = [Beat::data("five5"), Beat::trailer("grpc-status", "0")];
    let script = Script::of([Answer::status(200).header("x-from", "below").body(body)]);
    let service: StackService<Script> = Stack::new(Policy::default()).layer(script);
    let response = service.oneshot(get()).await?;
    assert_eq!(response.headers()["x-from"], "below");
    assert!(response.extensions().is_empty());
    assert_eq!(response.body().size_hint().exact(), None, "trailers may follow");
    let collected = response.into_body().collect().await?;
    assert_eq!(collected.trailers().map(|it| it["grpc-status"].as_bytes()), Some(&b"0"[..]));
    assert_eq!(collected.to_bytes(), "five5");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_refuses_at_once_and_a_refusal_is_no_attempt() -> Tested {
    let stack = limited(1)?;
    open(&stack).await?;
    let script = Script::of([Answer::status(200)]);
    let (start, tokens) = (Instant::now(), stack.budget().map(|it| it.tokens()));
    let error = stack.layer(script.clone()).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::BreakerOpen, 0));
    assert!(error.retry_at().is_some());
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Refused));
    assert_eq!((script.count(), start.elapsed()), (0, millis(0)));
    assert_eq!((stack.limit().in_use(), stack.budget().map(|it| it.tokens())), (0, tokens));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_breaker_refuses_before_the_queue() -> Tested {
    let stack = limited(1)?;
    open(&stack).await?;
    sleep(seconds(3)).await;
    let script = Script::of([Answer::status(200).body([Beat::Hang])]);
    let service = stack.layer(script.clone());
    let probe = service.clone().oneshot(get()).await?;
    assert_eq!((stack.breaker().state(), stack.limit().in_use()), (BreakerState::HalfOpen, 1));
    // Two more probes wait for the one place; whoever comes now need not.
    let waiting = [(); 2].map(|()| tokio::spawn(service.clone().oneshot(get())));
    tokio::task::yield_now().await;
    let start = Instant::now();
    let refused = service.clone().oneshot(get()).await;
    assert_eq!(kind(&refused), Some(ErrorKind::BreakerOpen));
    assert_eq!(start.elapsed(), millis(0));
    for waiting in waiting {
        assert_eq!(kind(&waiting.await?), Some(ErrorKind::LimitReached));
    }
    assert_eq!(start.elapsed(), seconds(1));
    assert_eq!(stack.breaker().state(), BreakerState::HalfOpen, "which says nothing of health");
    drop(probe);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_hung_dependency_is_tried_thrice_and_given_up_after_thirty_seconds() -> Tested {
    let script = Script::of([Answer::hang()]);
    let stack = Stack::new(Policy::default()).with_seed(1);
    let error = stack.layer(script.clone()).oneshot(get()).await.unwrap_err();
    let at: Vec<_> = script.arrived().iter().map(|it| it.at.as_secs()).collect();
    assert_eq!(at, [0, 10, 20]);
    assert_eq!((error.kind(), script.elapsed()), (ErrorKind::Deadline, seconds(30)));
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Deadline));
    assert_eq!(script.open(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_ends_it_all() -> Tested {
    let script = Script::of([Answer::hang()]);
    let service = Stack::new(Policy::default()).layer(script.clone());
    let result = service.oneshot(get_within(millis(700))).await;
    assert_eq!(kind(&result), Some(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), script.count()), (millis(700), 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_the_server_wished_is_on_the_response() -> Tested {
    let script = Script::of([Answer::status(503).header("retry-after", "90")]);
    let response = Stack::new(Policy::default()).layer(script).oneshot(get()).await?;
    assert_eq!(response.extensions().get::<Pushback>().map(|it| it.delay()), Some(seconds(90)));
    let told = response.extensions().get::<Report>().unwrap();
    assert_eq!(told.stop_reason(), Some(StopReason::Deadline));
    assert_eq!(told.retry_at(), Some((Instant::now() + seconds(90)).into_std()));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_holds_its_permit_and_a_backoff_does_not() -> Tested {
    let stack = limited(1)?;
    let busy =
        Answer::status(503).header("retry-after", "1").body([Beat::data("busy"), Beat::Hang]);
    let fine = Answer::status(200).body([Beat::data("fi"), Beat::data("ne")]);
    let script = Script::of([busy, fine]);
    let call = tokio::spawn(stack.layer(script.clone()).oneshot(get()));
    sleep(millis(10)).await;
    assert_eq!(stack.limit().in_use(), 1, "while it is drained");
    sleep(millis(90)).await;
    assert_eq!(stack.limit().in_use(), 0);
    let mut response = call.await??;
    assert_eq!((script.count(), stack.limit().in_use()), (2, 1));
    response.frame().await.transpose()?;
    assert_eq!(stack.limit().in_use(), 1);
    response.frame().await.transpose()?;
    assert_eq!((stack.limit().in_use(), stack.limit().max()), (0, Some(1)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_told_to_the_breaker_and_frees_its_permit() -> Tested {
    let stack = limited(1)?;
    let broken = Answer::status(404).body([Beat::data("no"), Beat::Break]);
    let service = stack.layer(Script::of([broken]));
    for calls in 1..=10 {
        assert_eq!(stack.breaker().state(), BreakerState::Closed, "{calls}");
        let response = service.clone().oneshot(get()).await?;
        assert!(response.into_body().collect().await.is_err());
        assert_eq!(stack.limit().in_use(), 0);
        sleep(millis(300)).await;
    }
    assert_eq!(stack.breaker().state(), BreakerState::Open);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn stacks_may_share_a_budget_and_draw_the_same_waits() -> Tested {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(0.0).build()?;
    let budget = BudgetHandle::new(&policy);
    let mut sent = Vec::new();
    for attempts in [2, 1] {
        let script = Script::of([Answer::fail(io::ErrorKind::ConnectionReset)]);
        let stack = Stack::new(policy.clone()).with_seed(9).with_budget(budget.clone());
        let error = stack.layer(script.clone()).oneshot(get()).await.unwrap_err();
        assert_eq!(error.attempts(), attempts, "the second finds nothing left");
        sent.push(script.arrived()[attempts as usize - 1].at);
    }
    let alone = Stack::new(policy).with_seed(9);
    let script = Script::of([Answer::fail(io::ErrorKind::ConnectionReset)]);
    drop(alone.layer(script.clone()).oneshot(get()).await);
    assert_eq!(script.arrived()[1].at, sent[0]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_ridden_out_with_few_requests_and_all_is_well_afterwards() -> Tested {
    let stack = Stack::new(Policy::default()).with_seed(1);
    let start = Instant::now();
    let down = move || start.elapsed() < seconds(20);
    let script = Script::by(move |_| Answer::status(if down() { 503 } else { 200 }));
    let service = stack.layer(script.clone());
    let events = Events::listen();
    let mut served = 0;
    while start.elapsed() < seconds(60) {
        let result = service.clone().oneshot(get()).await;
        served += usize::from(result.is_ok_and(|response| response.status() == 200));
        sleep(millis(10)).await;
    }
    let failed = script.count() - served;
    assert!(failed < 250, "{failed} of 2,000 were let through to a dependency that was down");
    assert!(served > 2_000, "{served} of the 4,000 after it was back");
    assert_eq!(stack.breaker().state(), BreakerState::Closed);
    let moves = events.take().into_iter().filter(|it| it.message.starts_with("circuit breaker"));
    assert_eq!(moves.count() as u64, stack.breaker().transitions(), "each was told once");
    for _ in 0..1_000 {
        assert_eq!(service.clone().oneshot(get()).await?.status(), 200);
    }
    Ok(())
}
