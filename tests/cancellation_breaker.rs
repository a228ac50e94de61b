//! What a dropped call tells the breaker: nothing, or after long enough that it was a failure.
//! Whichever, it keeps no probe.

use std::time::Duration;

use abate::{BreakerState, Deadline, ErrorKind, Policy, PolicyBuilder};
use abate_tests::plan::{Answer, When};
use abate_tests::probe::{Probe, ProbeHandle};
use abate_tests::rig::{Kind, Rig, call, get};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, task};
use tower::ServiceExt;

const KINDS: [Kind; 2] = [Kind::CircuitBreaker, Kind::Stack];

/// Half of this is how long a call may be under way before giving it up counts as a failure.
const TIMEOUT: Duration = Duration::from_secs(4);
const SLOW: Duration = Duration::from_secs(2);
const NOT_SLOW: Duration = Duration::from_millis(1_999);

fn single() -> PolicyBuilder {
    Policy::builder().with_attempts(1).with_attempt_timeout(TIMEOUT)
}

fn over(kind: Kind, policy: PolicyBuilder, answer: Answer) -> (Rig, ProbeHandle) {
    Rig::over(kind, &policy.build().unwrap(), Probe::answering([answer]))
}

fn breaker(rig: &Rig) -> (BreakerState, u64) {
    let breaker = rig.breaker.as_ref();
    breaker.map_or((BreakerState::Closed, 0), |it| (it.state(), it.transitions()))
}

const UNTOUCHED: (BreakerState, u64) = (BreakerState::Closed, 0);

/// Opens the breaker, and holds both permits of the limit of two.
async fn tripped(kind: Kind) -> (Rig, ProbeHandle, Vec<impl Sized>) {
    let hanging = |code| Answer::status(code).with_chunks(1, When::Never);
    let policy = single()
        .with_breaker_probes(1)
        .with_concurrency(2)
        .with_concurrency_wait(Duration::from_secs(20));
    let (rig, probe) = over(kind, policy, hanging(200));
    let mut holders = vec![rig.client.clone().oneshot(get()).await.unwrap()];
    probe.answer([hanging(503)]);
    while breaker(&rig).0 != BreakerState::Open {
        holders.truncate(1);
        holders.push(rig.client.clone().oneshot(get()).await.unwrap());
        advance(Duration::from_millis(250)).await;
    }
    (rig, probe, holders)
}

// CB-01
#[tokio::test(start_paused = true)]
async fn a_probe_dropped_at_any_point_gives_its_slot_to_the_next_call() {
    for kind in KINDS {
        let mut polls = 0;
        let mut ended = false;
        while !ended {
            let (rig, probe, holders) = tripped(kind).await;
            let mut holders = Some(holders);
            let answer = Answer::status(200).when(When::Polls(2));
            probe.answer([answer.with_chunks(2, When::Polls(1))]);
            advance(SLOW).await;

            let mut task = task::spawn(call(rig.client.clone()));
            for nth in 0..polls {
                if nth > 0 && !task.is_woken() {
                    assert!(holders.take().is_some(), "{kind:?}: hangs after {nth} polls");
                }
                ended = task.poll().is_ready();
                if !ended && breaker(&rig).0 == BreakerState::HalfOpen {
                    let error = call(rig.client.clone()).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::BreakerOpen, "there is one probe");
                }
            }
            drop(task);
            drop(holders);
            let waits = format!("{kind:?}, {polls} polls");
            assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{waits}");
            assert!(call(rig.client.clone()).await.is_ok(), "{waits}: it is a probe");
            assert_eq!(breaker(&rig).0, BreakerState::Closed, "{waits}");
            polls += 1;
        }
        // Waits for a permit, twice for the head, and twice for the body.
        assert_eq!(polls, if kind == Kind::Stack { 7 } else { 6 }, "{kind:?}");
    }
}

// CB-01
#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_and_never_polled_keeps_no_probe() {
    for kind in KINDS {
        let (mut rig, probe, holders) = tripped(kind).await;
        drop(holders);
        probe.answer([Answer::status(200)]);
        advance(SLOW).await;
        for _ in 0..10 {
            use tower::Service;
            drop(rig.client.ready().await.unwrap().call(get()));
            assert_eq!(breaker(&rig).0, BreakerState::HalfOpen, "{kind:?}");
        }
        assert!(call(rig.client.clone()).await.is_ok(), "{kind:?}");
        assert_eq!(breaker(&rig).0, BreakerState::Closed, "{kind:?}");
    }
}

// CB-06
#[tokio::test(start_paused = true)]
async fn a_hundred_calls_dropped_within_a_second_leave_the_breaker_closed() {
    for kind in KINDS {
        let (rig, probe) = over(kind, single(), Answer::status(200).when(When::Never));
        for together in [1, 10, 100] {
            for _ in 0..100 / together {
                let tasks = (0..together).map(|_| task::spawn(call(rig.client.clone())));
                let mut tasks: Vec<_> = tasks.collect();
                for task in &mut tasks {
                    assert_pending!(task.poll());
                }
                advance(Duration::from_millis(10 * together)).await;
            }
        }
        assert_eq!((breaker(&rig), probe.held()), (UNTOUCHED, (0, 0, 0)), "{kind:?}");
        // Nor do they water down what really fails, three calls in four: no row of ten.
        let mut made = 0;
        while breaker(&rig) == UNTOUCHED && made < 100 {
            made += 1;
            probe.answer([Answer::status(if made % 4 == 0 { 200 } else { 503 })]);
            assert!(call(rig.client.clone()).await.is_ok());
            advance(Duration::from_millis(200)).await;
        }
        assert_eq!(made, 11, "{kind:?}: 9 of 11 are significantly more than half");
    }
}

/// Gives up a call after `under_way`, ten times, and says whether that opened the breaker.
async fn opened_by_giving_up(kind: Kind, under_way: Duration) -> bool {
    let (rig, _) = over(kind, single(), Answer::status(200).when(When::Never));
    for _ in 0..10 {
        let mut task = task::spawn(call(rig.client.clone()));
        assert_pending!(task.poll());
        advance(under_way).await;
    }
    breaker(&rig) != UNTOUCHED
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_after_half_the_attempt_timeout_is_a_failure() {
    for kind in KINDS {
        assert!(opened_by_giving_up(kind, SLOW).await, "{kind:?}");
        assert!(!opened_by_giving_up(kind, NOT_SLOW).await, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cut_by_its_deadline_counts_like_one_that_is_given_up() {
    for (length, opens) in [(SLOW, true), (NOT_SLOW, false)] {
        let (rig, _) = over(Kind::Stack, single(), Answer::status(200).when(When::Never));
        for _ in 0..10 {
            let mut request = get();
            let deadline = Deadline::after(Instant::now().into_std(), length);
            request.extensions_mut().insert(deadline);
            let error = rig.client.clone().oneshot(request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Deadline);
        }
        assert_eq!(breaker(&rig) != UNTOUCHED, opens, "{length:?}");
    }
}

// CB-06
#[tokio::test(start_paused = true)]
async fn an_attempt_that_our_own_timeout_ends_is_a_failure() {
    let (rig, _) = over(Kind::Stack, single(), Answer::status(200).when(When::Never));
    for _ in 0..10 {
        let error = call(rig.client.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AttemptTimeout);
    }
    assert_eq!(breaker(&rig).0, BreakerState::Open);
}

#[tokio::test(start_paused = true)]
async fn time_in_our_own_queue_is_not_held_against_the_dependency() {
    for (under_way, opens) in [(None, false), (Some(NOT_SLOW), false), (Some(SLOW), true)] {
        let policy = single().with_concurrency(1).with_concurrency_wait(Duration::from_secs(20));
        let (rig, probe) = over(Kind::Stack, policy, Answer::status(200));
        for _ in 0..10 {
            // Not a success, which would end a row of failures.
            probe.answer([Answer::status(404).with_chunks(1, When::Never)]);
            let holder = rig.client.clone().oneshot(get()).await.ok();
            probe.answer([Answer::status(200).when(When::Never)]);
            let mut task = task::spawn(call(rig.client.clone()));
            assert_pending!(task.poll());
            advance(SLOW * 3).await;
            assert!(!task.is_woken());
            let Some(under_way) = under_way else { continue };
            drop(holder);
            assert_pending!(task.poll());
            advance(under_way).await;
        }
        assert_eq!(breaker(&rig).0 == BreakerState::Open, opens, "{under_way:?}");
        assert_eq!(rig.in_use(), 0);
    }
}
