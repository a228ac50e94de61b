//! A call can be dropped wherever it waits: what it held comes back, and what it never sent is not
//! paid for. That each layer gives everything back is a law of the contract (contract.rs).

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod cancellation_bodies;
mod cancellation_breaker;
mod cancellation_queue;

use std::time::Duration;

use abate::{Attempt, Jitter, Policy};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, Rig, call, get};
use tokio::time::advance;
use tokio_test::task;
use tower::ServiceExt;

const STEP: Duration = Duration::from_millis(5);

#[tokio::test(start_paused = true)]
async fn a_retry_dropped_before_it_is_sent_leaves_its_slot_to_others() {
    // One retry may be sent, and hardly another within the test.
    let policy = Policy::builder()
        .with_jitter(Jitter::None)
        .with_attempts(2)
        .with_budget_ratio(0.0)
        .with_budget_floor(0.1)
        .build()
        .unwrap();
    for kind in Kind::RETRYING {
        for polls in 1.. {
            let answer = Answer::status(503).with_chunks(1, When::After(STEP));
            let (rig, probe) = Rig::over(kind, &policy, Probe::answering([answer]));
            let mut sent = false;
            for _ in 0..5 {
                probe.ready([When::NOW, When::After(STEP)].map(Readiness::Comes));
                let before = probe.calls();
                let mut task = task::spawn(call(rig.client.clone()));
                for _ in 0..polls {
                    assert!(task.poll().is_pending());
                    while !task.is_woken() {
                        advance(STEP).await;
                    }
                }
                sent = probe.calls() > before + 1;
                if sent {
                    break;
                }
            }
            if sent {
                // Drained, waited, got a slot, and got ready.
                assert_eq!(polls, 4, "{kind:?}");
                break;
            }
            probe.ready([]);
            let before = probe.calls();
            assert!(call(rig.client.clone()).await.is_ok());
            assert_eq!(probe.calls(), before + 2, "{kind:?}, {polls} polls: it has its retry");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeat_dropped_before_its_slot_came_is_not_paid_for() {
    let policy = Policy::builder().with_budget_ratio(0.0).with_budget_floor(4.0).build().unwrap();
    let quick = Probe::answering([Answer::status(200)]);
    let (rig, probe) = Rig::over(Kind::RetryBudget, &policy, quick);
    let repeat = || {
        let mut request = get();
        Attempt::mark_repeat(request.extensions_mut());
        task::spawn(rig.client.clone().oneshot(request))
    };
    for _ in 0..2 {
        assert!(repeat().poll().is_ready(), "ahead of the pace");
    }
    let (tokens, calls) = (rig.tokens().unwrap(), probe.calls());
    for polls in [0, 1, 1, 1, 1, 2] {
        let mut held = repeat();
        for _ in 0..polls {
            assert!(held.poll().is_pending());
            assert_eq!(probe.held(), (0, 0, 0), "it waits without a reservation");
        }
        drop(held);
        assert_eq!((probe.held(), probe.calls()), ((0, 0, 0), calls));
        assert!((rig.tokens().unwrap() - tokens).abs() < 0.1, "{polls} polls");
    }
    // Had one of them kept its slot, this one would have to wait for two.
    let mut next = repeat();
    assert!(next.poll().is_pending());
    advance(Duration::from_millis(250)).await;
    assert!(next.is_woken());
    assert!(next.poll().is_ready());
}
