//! The service that was readied is the one that is called, on every attempt and under every layer.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod readiness_of_foreign;

use std::error::Error as _;
use std::time::Duration;

use abate::{Deadline, Error, ErrorKind, Jitter, Policy, PolicyBuilder, Report, StopReason};
use abate_tests::plan::{Answer, ProbeError, Readiness, When};
use abate_tests::probe::Probe;
use abate_tests::rig::{Kind, Rig, call, get};
use http::StatusCode;
use tokio::time::{Instant, timeout};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Service, ServiceExt};

/// Retries after exactly 100 ms, and after 200 ms.
fn exact() -> PolicyBuilder {
    Policy::builder().with_jitter(Jitter::None)
}

/// Two attempts that fail and one that does not.
fn third_time_lucky() -> Probe {
    Probe::answering([Answer::status(503), Answer::failing(), Answer::status(200)])
}

#[tokio::test]
#[should_panic = "called without being ready"]
async fn a_probe_that_is_not_ready_panics() {
    let _ = third_time_lucky().call(get()).await;
}

#[tokio::test]
#[should_panic = "called without being ready"]
async fn a_clone_of_a_ready_probe_is_not_ready() {
    let mut probe = third_time_lucky();
    assert!(ServiceExt::<http::Request<()>>::ready(&mut probe).await.is_ok());
    let _ = probe.clone().call(get()).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_queues_takes_the_readied_service_with_it() {
    for kind in [Kind::ConcurrencyLimit, Kind::Stack] {
        let policy = exact().with_concurrency(1).build().unwrap();
        let answer = Answer::status(200).with_chunks(1, When::Never);
        let (mut rig, probe) = Rig::over(kind, &policy, Probe::answering([answer]));
        let first = rig.client.clone().oneshot(get()).await.unwrap();
        let mut second = task::spawn(rig.client.ready().await.unwrap().call(get()));
        assert_pending!(second.poll());
        assert_eq!(probe.held(), (1, 0, 1), "{kind:?}: it waits with its reservation");
        assert_eq!(rig.in_use(), 1);
        drop(first);
        assert!(second.is_woken());
        let second = assert_ready!(second.poll()).unwrap();
        assert_eq!((probe.held(), probe.calls()), ((0, 0, 1), 2), "{kind:?}");
        drop(second);
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{kind:?}");
        assert!(rig.client.oneshot(get()).await.is_ok());
    }
}

// TC-02
#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_service_to_be_ready() {
    for kind in Kind::RETRYING {
        let late = When::After(Duration::from_millis(100));
        let script = [When::NOW, late, late].map(Readiness::Comes);
        let probe = third_time_lucky().readying(script);
        let (rig, probe) = Rig::over(kind, &exact().build().unwrap(), probe);
        let start = Instant::now();
        let response = call(rig.client.clone()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let millis = [0, 200, 500].map(Duration::from_millis);
        assert_eq!(probe.called_at(start), millis, "{kind:?}");
        let report = response.extensions().get::<Report>().unwrap();
        let waited: Vec<_> = report.tried().iter().map(|tried| tried.waited()).collect();
        assert_eq!(waited, [0, 200, 300].map(Duration::from_millis), "{kind:?}: it is told so");
    }
}

// TC-02
#[tokio::test(start_paused = true)]
async fn a_service_that_never_gets_ready_ends_the_call_at_its_deadline() {
    for kind in Kind::RETRYING {
        for own in [None, Some(Duration::from_millis(700))] {
            let policy = exact()
                .with_attempt_timeout(Duration::from_secs(1))
                .with_total_timeout(Duration::from_secs(1));
            let probe = third_time_lucky()
                .readying([Readiness::Comes(When::NOW), Readiness::Comes(When::Never)]);
            let (rig, probe) = Rig::over(kind, &policy.build().unwrap(), probe);
            let (start, tokens) = (Instant::now(), rig.tokens().unwrap());
            let mut request = get();
            if let Some(own) = own {
                request.extensions_mut().insert(Deadline::after(start.into_std(), own));
            }
            let ended = timeout(Duration::from_secs(60), rig.client.clone().oneshot(request));
            let error = ended.await.unwrap().unwrap_err();
            assert_eq!(start.elapsed(), own.unwrap_or(Duration::from_secs(1)), "{kind:?}");
            assert_eq!(error.kind(), ErrorKind::RetryRefused(StopReason::Deadline), "{kind:?}");
            assert_eq!((probe.calls(), error.attempts()), (1, 1), "{kind:?}");
            assert_eq!(probe.held(), (0, 0, 0), "{kind:?}");
            assert!((rig.tokens().unwrap() - tokens).abs() < 0.01, "{kind:?}: its token is back");
        }
    }
}

// TC-02
#[tokio::test(start_paused = true)]
async fn an_error_of_readiness_ends_the_call_unchanged_and_gives_the_token_back() {
    for kind in Kind::RETRYING {
        let ready = Readiness::Comes(When::NOW);
        let probe = third_time_lucky().readying([ready, ready, Readiness::Fails]);
        let (rig, probe) = Rig::over(kind, &exact().build().unwrap(), probe);
        let tokens = rig.tokens().unwrap();
        let error = call(rig.client.clone()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Client);
        assert_eq!(source(&error), Some(ProbeError::Readiness), "{kind:?}");
        assert_eq!((probe.calls(), error.attempts()), (2, 2), "{kind:?}");
        let stop = error.report().and_then(Report::stop_reason);
        assert_eq!(stop, Some(StopReason::Refused), "{kind:?}");
        let spent = tokens - rig.tokens().unwrap();
        assert!((0.9..1.1).contains(&spent), "{kind:?}: one was sent, and {spent} spent");
        assert_eq!(probe.held(), (0, 0, 0), "{kind:?}");
    }
}

fn source(error: &Error) -> Option<ProbeError> {
    error.source()?.downcast_ref().copied()
}
