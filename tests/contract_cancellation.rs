//! A call dropped at any await gives back what it held; what it never sent is not paid for.

use std::time::Duration;

use abate::{Attempt, BreakerState, Curve, Jitter, Policy};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::{Probe, ProbeHandle};
use abate_tests::rig::{AnyBody, Client, Kind, Rig, call, get};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::time::{Instant, advance};
use tokio_test::task;
use tower::ServiceExt;

const STEP: Duration = Duration::from_millis(5);

pub(crate) async fn cancellation(kind: Kind) {
    gives_everything_back(|probe| Rig::told(kind, &policy(), probe).0).await;
}

/// A retry starts 20 ms after a failure. A slot drains in 250 ms, so that all retries but the
/// first one wait for theirs.
pub(crate) fn policy() -> Policy {
    Policy::builder()
        .with_jitter(Jitter::None)
        .with_base(Duration::from_millis(20))
        .with_curve(Curve::Exponential { factor: 1.0 })
        .with_budget_ratio(0.0)
        .with_budget_floor(4.0)
        .with_breaker_probes(1)
        .with_concurrency(1)
        .with_concurrency_wait(Duration::from_secs(5))
        .build()
        .unwrap()
}

/// Drops a call after every number of polls, up to its end.
pub(crate) async fn gives_everything_back(rig: impl Fn(Probe) -> Rig) {
    let mut polls = 0;
    loop {
        let mut scene = Scene::new(&rig).await;
        let kind = scene.rig.kind;
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
            let held = [Kind::RetryBudget, Kind::Cooldown].contains(&kind);
            assert!(!held || times[scene.before] > STEP * 20, "{kind:?}: it was held");
            break;
        }
        polls += 1;
    }
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
    async fn new(rig: impl Fn(Probe) -> Rig) -> Self {
        let quick = Answer::status(503);
        let probe = Probe::answering([quick]);
        let handle = probe.handle();
        let (rig, probe) = (rig(probe), handle);
        // Fills the slots of its budget.
        for _ in 0..if rig.kind == Kind::RetryBudget { 3 } else { 1 } {
            assert!(rig.client.clone().oneshot(request(rig.kind)).await.is_ok());
        }
        probe.answer([Answer::status(200).with_chunks(1, When::Never)]);
        let mut holder = rig.client.clone().oneshot(get()).await.ok();
        if rig.kind == Kind::Cooldown {
            holder = None;
            probe.answer([quick]);
            assert!(call(rig.client.clone()).await.is_ok(), "and it asks to be left alone");
        }
        let (tokens, before) = (rig.tokens(), probe.calls());
        // Each readiness, each head and each chunk takes its time.
        let answer =
            |code| Answer::status(code).when(When::Polls(1)).with_chunks(2, When::Polls(1));
        // Whose body is read ahead is not one that has failed.
        let first = if rig.kind.reads_ahead() { 200 } else { 503 };
        probe.answer([answer(first), answer(503), answer(200)]);
        probe.ready([Readiness::Comes(When::After(STEP * 2)); 3]);
        Self { rig, probe, holder, tokens, before, start: Instant::now() }
    }

    /// Polls a call `polls` times, each time that it is woken, and drops it; true if it had ended.
    async fn drop_after(&mut self, polls: usize) -> bool {
        let call = read(self.rig.client.clone(), request(self.rig.kind));
        let mut task = task::spawn(call);
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
            let first = usize::from(self.rig.kind != Kind::RetryBudget);
            let spent = self.sent().saturating_sub(first) as f64;
            let off = before - now - spent;
            assert!(off.abs() < 0.4, "{when}: {spent} sent, {} spent", before - now);
        }
    }
}

/// A repeat for a layer that holds only those.
fn request(kind: Kind) -> Request<Full<Bytes>> {
    let mut request = get();
    if kind == Kind::RetryBudget {
        Attempt::mark_repeat(request.extensions_mut());
    }
    request
}

async fn read(client: Client, request: Request<Full<Bytes>>) {
    if let Ok(response) = client.oneshot(request).await {
        let _ = response.into_body().collect().await;
    }
}
