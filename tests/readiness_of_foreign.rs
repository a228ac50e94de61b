//! Under tower's own layers, which reserve in `poll_ready` and share what they reserve.

use std::time::Duration;

use abate::{Jitter, Policy};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::{Probe, ProbeFuture, ProbeHandle};
use abate_tests::rig::{Kind, Rig, call, get};
use futures_util::future::join_all;
use http::Request;
use tokio::time::timeout;
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::{Service, ServiceExt};

/// More than ever wait at once for a limit of 1 until a deadline passes.
const CALLS: usize = 40;

fn policy(concurrency: usize) -> Policy {
    Policy::builder()
        .with_jitter(Jitter::None)
        .with_base(Duration::from_millis(1))
        .with_budget_floor(1e6)
        .with_concurrency(concurrency)
        .with_concurrency_wait(Duration::from_secs(20))
        .build()
        .unwrap()
}

/// Every call fails twice; answers and bodies take their time.
fn slow() -> Probe {
    let (soon, pause) = (When::After(Duration::from_millis(1)), When::Polls(1));
    let answer = |code| Answer::status(code).when(soon).with_chunks(2, pause);
    Probe::answering([answer(503), answer(503), answer(200)])
}

/// Makes all calls at once, each on a clone.
async fn storm(rig: &Rig, probe: &ProbeHandle) {
    let calls = (0..CALLS).map(|_| call(rig.client.clone()));
    let results = timeout(Duration::from_secs(60), join_all(calls)).await.expect("a deadlock");
    for result in results {
        let response = result.unwrap();
        assert_eq!(response.status().is_success(), rig.kind.retries(), "{:?}", rig.kind);
        assert!(response.into_body().is_ok());
    }
    let attempts = if rig.kind.retries() { 3 } else { 1 };
    assert_eq!((probe.calls(), rig.in_use()), (CALLS * attempts, 0), "{:?}", rig.kind);
}

#[tokio::test(start_paused = true)]
async fn over_a_limit_of_one_all_calls_and_all_their_attempts_get_through() {
    for kind in Kind::ALL {
        for ours in [1, 3] {
            let probe = slow();
            let handle = probe.handle();
            let rig = Rig::new(kind, &policy(ours), ConcurrencyLimit::new(probe, 1));
            storm(&rig, &handle).await;
            assert_eq!((handle.most_live(), handle.held()), (1, (0, 0, 0)), "{kind:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_that_sits_ready_does_not_keep_a_call_from_its_retries() {
    // It holds one of two places; the other must do for all attempts.
    for kind in Kind::ALL {
        let probe = slow();
        let handle = probe.handle();
        let rig = Rig::new(kind, &policy(1), ConcurrencyLimit::new(probe, 2));
        let mut idle = rig.client.clone();
        assert!(idle.ready().await.is_ok());
        storm(&rig, &handle).await;
        assert_eq!((handle.most_live(), handle.held()), (1, (1, 0, 0)), "{kind:?}");
        assert!(idle.call(get()).await.is_ok(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_buffer_all_calls_and_all_their_attempts_get_through() {
    for kind in Kind::ALL {
        let probe = slow().readying([Readiness::Comes(When::Polls(1)); CALLS]);
        let handle = probe.handle();
        let rig = if kind.retries() {
            Rig::retrying(kind, &policy(3), buffered(probe))
        } else {
            Rig::plain(kind, &policy(3), buffered(probe))
        };
        storm(&rig, &handle).await;
        drop(rig);
        // Its worker ends with the last handle, and drops the probe that it keeps ready.
        tokio::task::yield_now().await;
        assert_eq!(handle.held(), (0, 0, 0), "{kind:?}");
    }
}

fn buffered<B: Send + 'static>(probe: Probe) -> Buffer<Request<B>, ProbeFuture> {
    Buffer::new(probe, 2)
}
