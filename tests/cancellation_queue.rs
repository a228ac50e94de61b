//! Places in the queue of a concurrency limit, and futures that are kept after their end.

use std::pin::Pin;
use std::time::Duration;

use abate::{
    BudgetHandle, ConcurrencyLimitLayer, DeadlineLayer, Error, ErrorKind, Jitter, Policy,
    PolicyBuilder, RetryLayer, StopReason,
};
use abate_tests::plan::{Answer, Readiness, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, Rig, call, get};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::time::{advance, timeout};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};

const WAIT: Duration = Duration::from_millis(10);
const LIMITED: [Kind; 2] = [Kind::ConcurrencyLimit, Kind::Stack];

fn limited(max: usize) -> PolicyBuilder {
    Policy::builder().with_jitter(Jitter::None).with_concurrency(max).with_concurrency_wait(WAIT)
}

// TC-04
#[tokio::test(start_paused = true)]
async fn waiters_that_time_out_or_are_dropped_leave_all_permits() {
    for kind in LIMITED {
        let answer = Answer::status(200).when(When::After(WAIT * 3)).with_chunks(1, When::NOW);
        let policy = limited(8).build().unwrap();
        let (rig, probe) = Rig::over(kind, &policy, Probe::answering([answer]));
        let spawn = || task::spawn(call(rig.client.clone()));
        for round in 0..1_000_u32 {
            let mut busy: Vec<_> = (0..8).map(|_| spawn()).collect();
            let mut waiters: Vec<_> = (0..8).map(|_| spawn()).collect();
            for task in busy.iter_mut().chain(&mut waiters) {
                assert_pending!(task.poll());
            }
            assert_eq!((rig.in_use(), probe.held().1), (8, 8), "{kind:?}, round {round}");
            advance(WAIT / 2).await;
            // Every pattern of eight is dropped in the middle of its wait.
            let mut nth = 0;
            waiters.retain(|_| {
                nth += 1;
                round >> (nth - 1) & 1 == 0
            });
            if round % 3 == 0 {
                // Permits are handed to those who wait, and these never look.
                busy.clear();
                assert!(waiters.iter().all(task::Spawn::is_woken));
                waiters.clear();
            }
            advance(WAIT / 2).await;
            for mut waiter in waiters {
                let refused = assert_ready!(waiter.poll()).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::LimitReached);
            }
            advance(WAIT * 2).await;
            for mut task in busy {
                assert!(assert_ready!(task.poll()).is_ok());
            }
            assert_eq!((rig.in_use(), probe.held()), (0, (0, 0, 0)), "{kind:?}, round {round}");
        }
        let mut all: Vec<_> = (0..9).map(|_| spawn()).collect();
        for task in &mut all {
            assert_pending!(task.poll());
        }
        assert_eq!((rig.in_use(), probe.held().1, probe.most_live()), (8, 8, 8), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_dropped_in_the_queue_was_not_sent_and_its_token_returns() {
    // Twice, since the second retry would find no slot if the first one had kept its own.
    let policy = limited(1).with_attempts(2).with_budget_floor(0.0).with_budget_ratio(0.0);
    let probe = Probe::answering([Answer::status(503)]);
    let (rig, probe) = Rig::over(Kind::Stack, &policy.build().unwrap(), probe);
    let tokens = rig.tokens();
    for round in 1..=3 {
        probe.answer([Answer::status(503)]);
        let mut retrying = task::spawn(call(rig.client.clone()));
        assert_pending!(retrying.poll());
        probe.answer([Answer::status(200).with_chunks(1, When::Never)]);
        let holder = rig.client.clone().oneshot(get()).await.unwrap();
        advance(Duration::from_millis(100)).await;
        assert!(retrying.is_woken());
        assert_pending!(retrying.poll());
        assert!(rig.tokens() < tokens, "it is paid for");
        assert_eq!(probe.calls(), round * 2, "and waits in the queue");
        drop(retrying);
        assert_eq!(rig.in_use(), 1);
        drop(holder);
        assert_eq!((rig.in_use(), probe.held()), (0, (0, 0, 0)));
    }
    probe.answer([Answer::status(503)]);
    let calls = probe.calls();
    assert!(call(rig.client.clone()).await.is_ok());
    assert_eq!(probe.calls(), calls + 2, "token and slot are there");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_made_and_never_polled_holds_nothing_once_dropped() {
    for kind in Kind::ALL {
        let (mut rig, probe) = Rig::over(kind, &limited(1).build().unwrap(), Probe::answering([]));
        for _ in 0..3 {
            let made = rig.client.ready().await.unwrap().call(get());
            assert_eq!(probe.held(), (0, 1, 0), "{kind:?}");
            assert_eq!(rig.in_use(), u32::from(LIMITED.contains(&kind)), "{kind:?}");
            drop(made);
            assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{kind:?}");
        }
    }
}

/// A call that is made and comes to its end, and its future.
async fn ended<L, R>(layer: L, probe: Probe) -> (Option<ErrorKind>, Pin<Box<impl Sized>>)
where
    L: Layer<Probe>,
    L::Service: Service<Request<Full<Bytes>>, Response = R, Error = Error>,
{
    let mut future = Box::pin(layer.layer(probe).ready().await.unwrap().call(get()));
    let result = timeout(Duration::from_secs(60), future.as_mut()).await.unwrap();
    (result.err().map(|error| error.kind()), future)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_holds_nothing_though_its_future_is_kept() {
    let second = Duration::from_secs(1);
    let hanging = || Probe::answering([Answer::status(200).when(When::Never)]);

    let probe = hanging();
    let kept = ended(DeadlineLayer::new(second), probe.clone()).await;
    assert_eq!((kept.0, probe.handle().held()), (Some(ErrorKind::Deadline), (0, 0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_was_not_sent_is_not_paid_for_though_its_future_is_kept() {
    let policy = limited(1).with_attempts(2).build().unwrap();
    let ready = Readiness::Comes(When::NOW);
    for (second, kind) in [
        (Readiness::Fails, ErrorKind::Client),
        (Readiness::Comes(When::Never), ErrorKind::RetryRefused(StopReason::Deadline)),
    ] {
        let layer = RetryLayer::new(policy.clone()).with_budget(BudgetHandle::new(&policy));
        let budget = layer.budget().unwrap();
        let before = budget.tokens();
        let probe = Probe::answering([Answer::status(503)]).readying([ready, second]);
        let kept = ended(layer, probe.clone()).await;
        assert_eq!((kept.0, probe.handle().held()), (Some(kind), (0, 0, 0)));
        assert!(budget.tokens() >= before, "{kind:?}");
    }
}

// TC-04
#[tokio::test(start_paused = true)]
async fn a_waiter_that_was_refused_is_not_in_the_way_though_its_future_is_kept() {
    let probe = Probe::answering([Answer::status(200).with_chunks(1, When::Never)]);
    let layer = ConcurrencyLimitLayer::from_policy(limited(1).build().unwrap());
    let holder = layer.layer(probe.clone()).oneshot(get()).await.unwrap();
    let kept = ended(layer.clone(), probe.clone()).await;
    assert_eq!(kept.0, Some(ErrorKind::LimitReached));
    drop(holder);
    assert_eq!((layer.handle().in_use(), probe.handle().held()), (0, (0, 0, 0)));
    assert!(layer.layer(probe).oneshot(get()).await.is_ok());
}
