//! Over layers of tower, which reserve in `poll_ready`, and share what they reserve.

use std::time::Duration;

use abate::ReplayBody;
use abate_tests::plan::{Answer, When};
use abate_tests::probe::{Probe, ProbeHandle};
use abate_tests::rig::{Kind, Rig, call};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::Full;
use tokio::time::timeout;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::limit::ConcurrencyLimit;
use tower::load::{CompleteOnResponse, PendingRequests};
use tower::load_shed::LoadShed;
use tower::timeout::Timeout;

use crate::{attempts, client, passes, policy};

/// A balancer over services that take requests with such a body. It cannot be cloned: it takes a
/// buffer to share it.
macro_rules! balanced {
    ($services:expr, $body:ty) => {{
        let load = |service| PendingRequests::new(service, CompleteOnResponse::default());
        let loads: Vec<_> = $services.into_iter().map(load).collect();
        Buffer::new(Balance::new(ServiceList::new::<Request<$body>>(loads)), 2)
    }};
}

const LONG: Duration = Duration::from_secs(60);

pub(crate) async fn over_concurrency_limit(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), ConcurrencyLimit::new(below, 1));
    passes(&rig, rig.client.clone(), &script).await;
    let (probe, handle) = failing_twice();
    let rig = Rig::new(kind, &policy(), ConcurrencyLimit::new(probe, 1));
    all_pass(rig, &[handle]).await;
}

pub(crate) async fn over_load_shed(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), LoadShed::new(below));
    passes(&rig, rig.client.clone(), &script).await;
    // With room for all it sheds none.
    let (probe, handle) = failing_twice();
    let rig = Rig::new(kind, &policy(), LoadShed::new(ConcurrencyLimit::new(probe, 20)));
    all_pass(rig, &[handle]).await;
}

pub(crate) async fn over_timeout(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), Timeout::new(below, LONG));
    passes(&rig, rig.client.clone(), &script).await;
    let (probe, handle) = failing_twice();
    all_pass(Rig::new(kind, &policy(), Timeout::new(probe, LONG)), &[handle]).await;
}

pub(crate) async fn over_buffer(kind: Kind) {
    let (below, script) = client(kind);
    let rig = match kind.retries() {
        true => Rig::retrying(kind, &policy(), Buffer::new(below, 2)),
        false => Rig::plain(kind, &policy(), Buffer::new(below, 2)),
    };
    passes(&rig, rig.client.clone(), &script).await;
    let (probe, handle) = failing_twice();
    let rig = match kind.retries() {
        true => Rig::retrying(kind, &policy(), Buffer::new(probe, 2)),
        false => Rig::plain(kind, &policy(), Buffer::new(probe, 2)),
    };
    all_pass(rig, &[handle]).await;
}

pub(crate) async fn over_balance(kind: Kind) {
    let (below, script) = client(kind);
    let both = vec![below.clone(), below];
    let rig = match kind.retries() {
        true => Rig::retrying(kind, &policy(), balanced!(both, ReplayBody<Full<Bytes>>)),
        false => Rig::plain(kind, &policy(), balanced!(both, Full<Bytes>)),
    };
    passes(&rig, rig.client.clone(), &script).await;

    let (probes, handles): (Vec<_>, Vec<_>) =
        [failing_twice(), failing_twice()].into_iter().unzip();
    let rig = match kind.retries() {
        true => Rig::retrying(kind, &policy(), balanced!(probes, ReplayBody<Full<Bytes>>)),
        false => Rig::plain(kind, &policy(), balanced!(probes, Full<Bytes>)),
    };
    all_pass(rig, &handles).await;
    assert!(kind.retries() || handles.iter().all(|it| it.calls() > 0), "both have a share");
}

fn failing_twice() -> (Probe, ProbeHandle) {
    let answer = |code| Answer::status(code).when(When::Polls(1)).with_chunks(2, When::Polls(1));
    let probe = Probe::answering([answer(503), answer(503), answer(200)]);
    let handle = probe.handle();
    (probe, handle)
}

/// Makes 8 calls at once, and looks at what is left of them.
async fn all_pass(rig: Rig, probes: &[ProbeHandle]) {
    let kind = rig.kind;
    let calls = (0..8).map(|_| call(rig.client.clone()));
    for result in timeout(LONG, join_all(calls)).await.unwrap() {
        let response: Response<_> = result.unwrap();
        assert_eq!(response.status(), if kind.retries() { 200 } else { 503 });
        assert_eq!(response.into_body().unwrap(), "chunkchunk");
    }
    let calls: usize = probes.iter().map(ProbeHandle::calls).sum();
    assert_eq!((calls, rig.in_use()), (8 * attempts(kind), 0));
    drop(rig);
    // The worker of a buffer ends with the last handle, and drops what it keeps ready.
    tokio::task::yield_now().await;
    for probe in probes {
        assert_eq!(probe.held(), (0, 0, 0));
    }
}
