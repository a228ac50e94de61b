//! How long an answer is held back for its first frame.

use std::time::Duration;

use abate::grpc::{GrpcStatusLayer, LOOK_AHEAD};
use abate::{AttemptTimeoutLayer, DeadlineLayer, ErrorKind};
use abate_tests::play::Beat;
use abate_tests::script::Script;
use http_body_util::BodyExt;
use tokio::time::{Instant, advance};
use tower::{BoxError, Layer, ServiceExt};

use crate::{MESSAGE, Tested, call, head, millis, repeatable, seconds, through, trailers};

/// A timer may be late by one, since tokio counts in milliseconds.
const TICK: Duration = millis(1);

#[tokio::test(start_paused = true)]
async fn the_head_of_a_silent_stream_comes_up_soon_and_its_messages_when_they_come() -> Tested {
    let silence = Beat::Pause(seconds(300));
    let script = Script::of([head().body([silence.clone(), MESSAGE, silence, MESSAGE])]);
    let start = Instant::now();
    let mut body = through(&script, call()).await?.into_body();
    let waited = start.elapsed();
    assert!(LOOK_AHEAD <= waited && waited <= LOOK_AHEAD + TICK, "{waited:?}");
    for (n, late) in [(1, TICK), (2, TICK * 2)] {
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok_and(|it| it.is_data())));
        let at = start.elapsed();
        assert!(seconds(300) * n <= at && at <= seconds(300) * n + late, "number {n}: {at:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_comes_within_the_time_is_not_kept_waiting() -> Tested {
    for end in [MESSAGE, trailers("14")] {
        let script = Script::of([head().body([Beat::Pause(millis(20)), end])]);
        let layer = GrpcStatusLayer::new();
        let response = layer.layer(script.clone()).oneshot(call()).await?;
        assert!(script.elapsed() <= millis(20) + TICK, "{:?}", script.elapsed());
        drop(response);
    }
    Ok(())
}

// CL-04
#[tokio::test(start_paused = true)]
async fn trailers_that_come_late_but_in_time_are_known_before_the_answer_is_handed_up() -> Tested {
    let late = |wait| head().body([Beat::Pause(wait), trailers("14")]);
    let script = Script::of([late(millis(40)), crate::ok()]);
    assert_eq!(crate::attempts(&through(&script, repeatable()).await?), Some(2));
    // Too late: an answer like any other.
    let script = Script::of([late(LOOK_AHEAD * 2), crate::ok()]);
    let response = through(&script, repeatable()).await?;
    assert_eq!((script.count(), response.headers().len()), (1, 1));
    let body = response.into_body().collect().await?;
    assert_eq!(body.trailers().map(|it| it["grpc-status"].as_bytes()), Some(&b"14"[..]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn no_look_ahead_looks_at_what_is_there_and_waits_for_nothing() -> Tested {
    let layer = GrpcStatusLayer::new().with_look_ahead(Duration::ZERO);
    // Between two ticks, where a timer for now would wait for the next one.
    advance(Duration::from_micros(500)).await;
    for pause in [None, Some(Beat::Pause(millis(20)))] {
        let there = pause.is_none();
        let beats: Vec<_> = pause.into_iter().chain([trailers("14")]).collect();
        let script = Script::of([head().body(beats)]);
        let response = layer.layer(script.clone()).oneshot(call()).await?;
        assert_eq!(response.headers().contains_key("grpc-status"), there);
        assert_eq!(script.elapsed(), Duration::ZERO);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_attempt_timeout_and_the_deadline_hold_while_it_looks() -> Tested {
    let endless = GrpcStatusLayer::new().with_look_ahead(Duration::MAX);
    let script = Script::of([head().body([Beat::Hang])]);
    let timeout = AttemptTimeoutLayer::new(millis(300));
    let result = timeout.layer(endless.layer(script.clone())).oneshot(call()).await;
    assert_eq!(result.map(drop).map_err(|error| error.kind()), Err(ErrorKind::AttemptTimeout));
    let deadline = DeadlineLayer::new(millis(300));
    let result = deadline.layer(endless.layer(script.clone())).oneshot(call()).await;
    assert_eq!(result.map(drop).map_err(|error| error.kind()), Err(ErrorKind::Deadline));
    assert!(script.elapsed() <= millis(600) + 2 * TICK, "{:?}", script.elapsed());
    assert_eq!(script.open(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_looks_lets_the_answer_go() -> Tested {
    let script = Script::of([head().body([Beat::Hang])]);
    let looking = GrpcStatusLayer::new().layer(script.clone()).oneshot(call());
    assert!(tokio::time::timeout(millis(10), looking).await.is_err());
    assert_eq!((script.count(), script.open()), (1, 0));
    let service = GrpcStatusLayer::new().layer(Script::of([crate::ok()]));
    let body = service.oneshot(call()).await?.into_body().collect().await?;
    assert_eq!(body.to_bytes().len(), 5);
    Ok::<(), BoxError>(())
}
