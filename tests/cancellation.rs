//! A call can be dropped wherever it waits: what it held comes back, and what it never sent is not
//! paid for.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod cancellation_bodies;
mod cancellation_breaker;
mod cancellation_queue;

use std::time::Duration;

use abate::{Attempt, BreakerState, Curve, Jitter, Policy};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::{Probe, ProbeHandle};
use abate_tests::rig::{AnyBody, Kind, Rig, call, get};
use http::Response;
use tokio::time::{Instant, advance};
use tokio_test::task;
use tower::ServiceExt;

const STEP: Duration = Duration::from_millis(5);

/// A retry starts 20 ms after a failure. A slot drains in 250 ms, so that all retries but the
/// first one wait for theirs.
fn policy() -> Policy {
    Policy::builder()
        .with_jitter(Jitter::None)
        .with_base(Duration::from_millis(20))
        .with_curve(Curve::Exponential { factor: 1.0 })
        .with_budget_ratio(0.0)
        .with_budget_floor(4.0)
        .with_concurrency(1)
        .with_concurrency_wait(Duration::from_secs(5))
        .build()
        .unwrap()
}

/// Each readiness, each head and each chunk takes its time.
fn slow_down(probe: &ProbeHandle) {
    let answer = |code| Answer::status(code).when(When::Polls(1)).with_chunks(2, When::Polls(1));
    probe.answer([answer(503), answer(503), answer(200)]);
    probe.ready([Readiness::Comes(When::After(STEP * 2)); 3]);
}

/// A layer over a slow probe, with a busy limit and taken slots.
struct Scene {
    rig: Rig,
    probe: ProbeHandle,
    /// Holds the only permit.
    holder: Option<Response<AnyBody>>,
    tokens: Option<f64>,
    before: usize,
    start: Instant,
}

impl Scene {
    async fn new(kind: Kind) -> Self {
        let quick = Answer::status(503);
        let (rig, probe) = Rig::over(kind, &policy(), Probe::answering([quick]));
        // Fills the slots of its budget.
        assert!(call(rig.client.clone()).await.is_ok());
        probe.answer([Answer::status(200).with_chunks(1, When::Never)]);
        let holder = rig.client.clone().oneshot(get()).await.ok();
        let (tokens, before) = (rig.tokens(), probe.calls());
        slow_down(&probe);
        Self { rig, probe, holder, tokens, before, start: Instant::now() }
    }

    /// Polls a call `polls` times, each time that it is woken, and drops it; true if it had ended.
    async fn drop_after(&mut self, polls: usize) -> bool {
        let mut task = task::spawn(call(self.rig.client.clone()));
        for nth in 0..polls {
            if nth > 0 {
                let mut stuck = Duration::ZERO;
                while !task.is_woken() {
                    advance(STEP).await;
                    stuck += STEP;
                    if stuck > STEP * 20 {
                        self.holder = None;
                    }
                    assert!(stuck < Duration::from_secs(1), "hangs after {nth} polls");
                }
            }
            if task.poll().is_ready() {
                return true;
            }
        }
        false
    }

    /// The attempts that went out of the calls since the scene was set.
    fn sent(&self) -> usize {
        self.probe.calls() - self.before
    }

    fn assert_nothing_is_held(&self, when: &str) {
        let bodies = usize::from(self.holder.is_some());
        assert_eq!(self.probe.held(), (0, 0, bodies), "{when}");
        if self.rig.limit.is_some() {
            assert_eq!(self.rig.in_use() as usize, bodies, "{when}");
        }
        if let (Some(before), Some(now)) = (self.tokens, self.rig.tokens()) {
            let spent = self.sent().saturating_sub(1) as f64;
            let off = before - now - spent;
            assert!(off.abs() < 0.4, "{when}: {spent} sent, {} spent", before - now);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_point_gives_everything_back() {
    for kind in Kind::ALL {
        let mut polls = 0;
        loop {
            let mut scene = Scene::new(kind).await;
            let ended = scene.drop_after(polls).await;
            scene.assert_nothing_is_held(&format!("{kind:?}, {polls} polls"));
            let sent = scene.sent();
            drop(scene.holder.take());
            assert_eq!(scene.rig.in_use(), 0);
            scene.probe.ready([]);
            let after = call(scene.rig.client.clone()).await.unwrap();
            assert!(after.into_body().is_ok(), "{kind:?}, {polls} polls: it works as before");
            if let Some(breaker) = &scene.rig.breaker {
                assert_eq!(breaker.state(), BreakerState::Closed, "{kind:?}, {polls} polls");
            }
            if ended {
                let attempts = if kind.retries() { 3 } else { 1 };
                assert_eq!(sent, attempts, "{kind:?}");
                let times = scene.probe.called_at(scene.start);
                let gaps = times[scene.before..].windows(2).take(attempts - 1);
                let slots = gaps.filter(|it| it[1] - it[0] > STEP * 20).count();
                assert_eq!(slots, attempts - 1, "{kind:?}: each retry waited for its slot");
                break;
            }
            polls += 1;
        }
    }
}

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
