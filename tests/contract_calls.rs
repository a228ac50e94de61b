//! How a layer calls the service below, and what it does while that is not ready.

use std::error::Error as _;
use std::task::Poll;
use std::time::Duration;

use abate::{
    Attempt, BreakerState, Error, ErrorKind, Jitter, Policy, ReplayBody, Report, RetryLayer,
};
use abate_tests::plan::{Answer, ProbeError, Readiness, When};
use abate_tests::probe::{Probe, ProbeHandle};
use abate_tests::rig::{Client, Kind, Rig, call, get, telling};
use bytes::Bytes;
use futures_util::future::join_all;
use http::Request;
use http_body_util::Full;
use tokio::time::{Instant, advance, timeout};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, task};
use tower::limit::ConcurrencyLimit;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::contract_cancellation::policy as paced;

const TENTH: Duration = Duration::from_millis(100);

/// Retries after exactly 100 ms, and after 200 ms.
fn policy(concurrency: usize) -> Policy {
    Policy::builder()
        .with_jitter(Jitter::None)
        .with_budget_floor(1e6)
        .with_concurrency(concurrency)
        .with_concurrency_wait(Duration::from_secs(20))
        .build()
        .unwrap()
}

/// Two attempts that fail and one that does not.
fn third_time_lucky() -> Probe {
    Probe::answering([503, 503, 200].map(Answer::status))
}

/// The attempts of one call.
fn each(kind: Kind) -> usize {
    if kind.retries() { 3 } else { 1 }
}

/// A repeat where that is another matter than a call.
fn request(kind: Kind) -> Request<Full<Bytes>> {
    let mut request = get();
    if kind == Kind::RetryBudget {
        Attempt::mark_repeat(request.extensions_mut());
    }
    request
}

// Of its own, a clone is not ready, and its `call` would panic.
pub(crate) async fn readiness(kind: Kind) {
    // A handle that is kept does not keep from its own call what it reserved for it.
    let probe = third_time_lucky();
    let handle = probe.handle();
    let mut rig = match kind {
        Kind::Cooldown => Rig::new(kind, &paced(), ConcurrencyLimit::new(telling(probe), 1)),
        _ => Rig::new(kind, &paced(), ConcurrencyLimit::new(probe, 1)),
    };
    for round in 1..=4 {
        let call = rig.client.ready().await.unwrap().call(request(kind));
        let ended = timeout(Duration::from_secs(60), call).await;
        assert!(ended.is_ok_and(|it| it.is_ok()), "round {round}: waits for itself");
    }
    assert_eq!((handle.held(), handle.most_live()), ((0, 0, 0), 1));

    let script = [Readiness::Comes(When::Polls(2)); 7];
    let (mut rig, probe) = Rig::told(kind, &policy(1), third_time_lucky().readying(script));
    for round in 1..=4 {
        let ready = rig.client.ready().await.unwrap();
        let another = ready.clone();
        let response = ready.call(request(kind)).await.unwrap();
        assert_eq!(response.status().is_success(), kind.retries());
        assert_eq!(probe.calls(), round * each(kind));
        drop((response, another));
        assert_eq!(probe.held(), (0, 0, 0));
    }
}

pub(crate) async fn readiness_error(kind: Kind) {
    let probe = third_time_lucky().readying([Readiness::Fails]);
    let (rig, probe) = Rig::told(kind, &paced(), probe);
    let mut client = task::spawn(rig.client.clone());
    is_unchanged(&assert_ready_err!(ask(&mut client)));
    assert!(assert_ready!(ask(&mut client)).is_ok(), "it can be asked again");
    drop(client);

    // Where a layer readies the service itself: before a retry, and after it held a call.
    let late = [Kind::Retry, Kind::RetryBudget, Kind::Cooldown, Kind::Stack].contains(&kind);
    if late {
        let before = hold_next(&rig, &probe).await;
        let tokens = rig.tokens();
        probe.ready([Readiness::Comes(When::NOW), Readiness::Fails]);
        let rested = rig.client.clone().oneshot(request(kind));
        is_unchanged(&rested.await.unwrap_err());
        assert_eq!(probe.calls() - before, usize::from(kind.retries()));
        let (before, now) = (tokens.unwrap_or(0.0), rig.tokens().unwrap_or(0.0));
        let sent = if kind.retries() { 1.0 } else { 0.0 };
        assert!(before - now < sent + 0.1, "what was not sent is not paid for: {before}, {now}");
    }
    assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0));
    let state = rig.breaker.as_ref().map_or(BreakerState::Closed, |it| it.state());
    assert_eq!(state, BreakerState::Closed);
    assert!(call(rig.client).await.is_ok());
}

/// Lets the next call be held, by a layer that does so; returns the calls so far.
async fn hold_next(rig: &Rig, probe: &ProbeHandle) -> usize {
    if rig.kind == Kind::Cooldown {
        assert!(call(rig.client.clone()).await.is_ok_and(|it| it.status() == 503));
    }
    // Slots of a budget drain at its pace: after some repeats one has to wait.
    for _ in 0..if rig.kind == Kind::RetryBudget { 3 } else { 0 } {
        let _ = rig.client.clone().oneshot(request(rig.kind)).await;
    }
    probe.calls()
}

fn is_unchanged(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Client);
    let source = error.source().and_then(|source| source.downcast_ref().copied());
    assert_eq!(source, Some(ProbeError::Readiness));
}

pub(crate) async fn back_pressure(kind: Kind) {
    let probe = third_time_lucky().readying([Readiness::Comes(When::After(TENTH))]);
    let (rig, probe) = Rig::told(kind, &policy(1), probe);
    let mut client = task::spawn(rig.client.clone());
    assert_pending!(ask(&mut client));
    advance(TENTH).await;
    assert!(client.is_woken());
    assert!(assert_ready!(ask(&mut client)).is_ok());
    assert!(assert_ready!(ask(&mut client)).is_ok(), "and stays so");
    assert_eq!((probe.held(), rig.in_use()), ((1, 0, 0), 0), "takes no permit");
    drop(client);
    assert_eq!(probe.held(), (0, 0, 0));

    let rig = Rig::new(kind, &policy(1), ConcurrencyLimit::new(third_time_lucky(), 1));
    let [mut first, mut second] = [(); 2].map(|()| task::spawn(rig.client.clone()));
    assert!(assert_ready!(ask(&mut first)).is_ok());
    assert_pending!(ask(&mut second));
    drop(first);
    assert!(second.is_woken());
    assert!(assert_ready!(ask(&mut second)).is_ok());
}

fn ask(client: &mut task::Spawn<Client>) -> Poll<Result<(), Error>> {
    client.enter(|cx, mut client| client.poll_ready(cx))
}

pub(crate) async fn clone(kind: Kind) {
    let answer = |code| Answer::status(code).when(When::Polls(1)).with_chunks(2, When::Polls(1));
    let probe = Probe::answering([answer(503), answer(503), answer(200)]);
    let (mut rig, probe) = Rig::told(kind, &policy(3), probe);
    rig.client.ready().await.unwrap();
    let mut clones = vec![rig.client.clone(); 100];
    assert_eq!(probe.held(), (1, 0, 0), "clones reserve nothing");
    for client in &mut clones[..50] {
        client.ready().await.unwrap();
    }
    assert_eq!((probe.held(), rig.in_use()), ((51, 0, 0), 0));
    drop(clones);
    assert_eq!(probe.held(), (1, 0, 0), "and take nothing with them");
    assert!(rig.client.call(get()).await.is_ok(), "the one that was readied still is");
    let before = probe.calls();

    let calls = vec![rig.client.clone(); 100].into_iter().map(call);
    for result in join_all(calls).await {
        // A breaker may have had enough of them.
        let refused = |error: Error| error.kind() == ErrorKind::BreakerOpen;
        assert!(result.map_or_else(refused, |response| response.into_body().is_ok()));
    }
    assert!(probe.calls() >= before + 3);
    assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0));
}

/// Three attempts: its own, or those of a retry above it.
pub(crate) async fn attempts(kind: Kind) {
    let script = [Readiness::Comes(When::Polls(1)); 3];
    let (rig, probe) = Rig::over(kind, &policy(1), third_time_lucky().readying(script));
    let (start, tokens) = (Instant::now(), rig.tokens());
    let response = if kind.retries() {
        rig.client.clone().oneshot(get()).await
    } else {
        let retry = RetryLayer::new(policy(1)).without_budget();
        let empty = |request: Request<ReplayBody<_>>| request.map(|_| Full::default());
        let below = ServiceBuilder::new().map_request(empty).service(rig.client.clone());
        retry.layer(below).oneshot(get()).await
    };
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.extensions().get::<Report>().map(Report::attempts), Some(3));
    drop(response);
    let millis = [0, 100, 300].map(Duration::from_millis);
    assert_eq!(probe.called_at(start), millis);
    assert_eq!((probe.held(), rig.in_use(), probe.most_live()), ((0, 0, 0), 0, 1));
    if let (Some(before), Some(now)) = (tokens, rig.tokens()) {
        assert!(before - now < 2.1, "paid for once: {before}, {now}");
    }
    let breaker = rig.breaker.as_ref().map(|it| (it.state(), it.transitions()));
    assert!(breaker.is_none_or(|it| it == (BreakerState::Closed, 0)));
}
