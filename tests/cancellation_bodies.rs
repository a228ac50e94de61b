//! Response bodies that are dropped unread, half read or broken, and those that a retry discards.

use std::time::Duration;

use abate::{Jitter, Policy};
use abate_tests::plan::{Answer, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, Rig, call, get};
use http_body_util::BodyExt;
use tokio::time::advance;
use tokio_test::{assert_pending, assert_ready, task};
use tower::ServiceExt;

fn policy() -> Policy {
    let policy = Policy::builder().with_jitter(Jitter::None).with_concurrency(1);
    policy.with_base(Duration::from_millis(200)).build().unwrap()
}

/// The permits that a kind of layer holds while it should hold one.
fn one(kind: Kind) -> u32 {
    u32::from(matches!(kind, Kind::ConcurrencyLimit | Kind::Stack))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_gives_its_permit_back_at_once() {
    // What is read ahead breaks as an attempt, before there is a response.
    for kind in Kind::ALL.into_iter().filter(|kind| !kind.reads_ahead()) {
        let answer = Answer::status(200).with_chunks(1, When::NOW).breaking_off();
        let (rig, probe) = Rig::over(kind, &policy(), Probe::answering([answer]));
        let mut response = rig.client.clone().oneshot(get()).await.unwrap();
        assert!(response.body_mut().frame().await.is_some_and(|it| it.is_ok()));
        assert_eq!(rig.in_use(), one(kind));
        assert!(response.body_mut().frame().await.is_some_and(|it| it.is_err()));
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{kind:?}: though it is kept");
        drop(response);
        assert_eq!(rig.in_use(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_at_its_end_holds_no_permit_though_nobody_reads_it() {
    for kind in Kind::ALL {
        let (rig, probe) = Rig::over(kind, &policy(), Probe::answering([Answer::status(204)]));
        let response = rig.client.clone().oneshot(get()).await.unwrap();
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{kind:?}");
        drop(response);
    }
}

#[tokio::test(start_paused = true)]
async fn a_discarded_body_is_let_go_after_50_ms_and_not_held_through_the_wait() {
    for kind in Kind::RETRYING {
        let hanging = Answer::status(503).with_chunks(1, When::NOW).hanging();
        let probe = Probe::answering([hanging, Answer::status(200)]);
        let (rig, probe) = Rig::over(kind, &policy(), probe);
        let mut task = task::spawn(call(rig.client.clone()));
        assert_pending!(task.poll());
        advance(Duration::from_millis(49)).await;
        assert!(!task.is_woken(), "{kind:?}");
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 1), one(kind)), "{kind:?}");
        advance(Duration::from_millis(1)).await;
        assert_pending!(task.poll());
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{kind:?}");
        advance(Duration::from_millis(150)).await;
        assert!(assert_ready!(task.poll()).is_ok());
        assert_eq!(probe.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_discarded_body_that_ends_is_let_go_at_its_end() {
    for kind in Kind::RETRYING {
        let ending = Answer::status(503).with_chunks(2, When::Polls(1));
        let (rig, probe) = Rig::over(kind, &policy(), Probe::answering([ending]));
        let mut task = task::spawn(call(rig.client.clone()));
        for open in [1, 1, 0] {
            assert_pending!(task.poll());
            assert_eq!(probe.held(), (0, 0, open), "{kind:?}");
            assert_eq!(rig.in_use() as usize, open * one(kind) as usize, "{kind:?}");
        }
        assert!(!task.is_woken(), "{kind:?}: now it waits");
        assert_eq!(probe.calls(), 1);
    }
}
