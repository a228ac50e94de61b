//! Bodies read through a layer as they do below it, and are let go when they are dropped.

use std::sync::Arc;
use std::time::Duration;

use abate::{Jitter, Policy};
use abate_tests::plan::{Answer, When};
use abate_tests::play::{Beat, Played, Seats};
use abate_tests::probe::Probe;
use abate_tests::rig::{AnyBody, Kind, Rig, call, get};
use abate_tests::script::{self, Script};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tower::ServiceExt;

fn policy() -> Policy {
    let policy = Policy::builder().with_jitter(Jitter::None).with_concurrency(1);
    policy.with_base(Duration::from_millis(200)).build().unwrap()
}

/// The permits that a kind of layer holds while it should hold one.
fn one(kind: Kind) -> u32 {
    u32::from(matches!(kind, Kind::ConcurrencyLimit | Kind::Stack))
}

/// A layer over one that answers with `beats`, on the third attempt where there are three.
async fn answered(kind: Kind, beats: Vec<Beat>) -> (Rig, Script, AnyBody) {
    let failures = if kind.retries() { 2 } else { 0 };
    let script = Script::by(move |n| {
        script::Answer::status(if n < failures { 503 } else { 200 }).body(beats.clone())
    });
    let rig = Rig::new(kind, &policy(), script.clone());
    let response = rig.client.clone().oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), script.count()), (200, failures + 1));
    (rig, script, response.into_body())
}

pub(crate) async fn trailers(kind: Kind) {
    let beats = vec![Beat::data("hel"), Beat::data("lo"), Beat::trailer("x-sum", "5")];
    let (rig, script, mut body) = answered(kind, beats).await;
    let frames = if kind.reads_ahead() { vec!["hello"] } else { vec!["hel", "lo"] };
    for data in frames {
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), data);
        assert!(!body.is_end_stream());
        assert_eq!(rig.in_use(), one(kind), "the trailers are still to come");
    }
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &"5".parse().unwrap()));
    assert_eq!((rig.in_use(), script.open()), (0, 0), "and those are the end");
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}

pub(crate) async fn size_hint(kind: Kind) {
    let data = || Beat::data("chunk");
    let pause = Beat::Pause(Duration::from_millis(10));
    for beats in [
        vec![],
        vec![data(), data(), data()],
        vec![data(), pause, data(), Beat::trailer("x-sum", "5")],
    ] {
        let seat = Arc::new(Seats::default()).take();
        let mut below = Played::new(beats.clone(), Instant::now(), seat);
        let (.., mut body) = answered(kind, beats).await;
        if kind.reads_ahead() {
            below =
                Played::new(joined(below).await, Instant::now(), Arc::new(Seats::default()).take());
        }
        loop {
            let (own, other) = (body.size_hint(), below.size_hint());
            // One that was read ahead knows what there is before the trailers.
            assert!(own.lower() == other.lower() || kind.reads_ahead() && own.upper().is_none());
            assert_eq!(own.upper(), other.upper());
            assert_eq!(body.is_end_stream(), below.is_end_stream());
            let (own, other) = (body.frame().await, below.frame().await);
            assert_eq!(own.is_some(), other.is_some());
            if own.is_none() {
                break;
            }
        }
    }
}

/// What is left of a body that was read: its data is one frame.
async fn joined(body: Played) -> Vec<Beat> {
    let read = body.collect().await.unwrap();
    let trailers = read.trailers().cloned();
    let data = Some(read.to_bytes()).filter(|data| !data.is_empty()).map(Beat::Data);
    data.into_iter().chain(trailers.map(Beat::Trailers)).collect()
}

// TC-06
pub(crate) async fn dropped_body(kind: Kind) {
    // One that was read ahead is open no longer, and comes in one piece.
    let (frames, open) = if kind.reads_ahead() { (1, 0) } else { (3, 1) };
    for read in 0..=frames {
        let answer = Answer::status(200).with_chunks(3, When::Polls(1));
        let (rig, probe) = Rig::over(kind, &policy(), Probe::answering([answer]));
        let mut response = rig.client.clone().oneshot(get()).await.unwrap();
        for _ in 0..read {
            assert_eq!((probe.held(), rig.in_use()), ((0, 0, open), one(kind)));
            assert!(response.body_mut().frame().await.is_some_and(|it| it.is_ok()));
        }
        let left = u32::from(read < frames);
        assert_eq!(rig.in_use(), one(kind) * left, "the last frame is the end");
        drop(response);
        assert_eq!((probe.held(), rig.in_use()), ((0, 0, 0), 0), "{read} read");
        assert!(call(rig.client).await.is_ok());
    }
}
