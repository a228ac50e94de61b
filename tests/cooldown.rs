//! The gate that holds or refuses the other calls while a dependency wants to be left alone.

use std::time::Duration;

use abate::{
    Attempt, CooldownLayer, Deadline, ErrorKind, Fault, Policy, RetryLayer, Scope, StopReason,
};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderName, HeaderValue, Request, Uri};
use http_body_util::Full;
use tokio::time::{Instant, advance, sleep};
use tower::buffer::Buffer;
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

const SECOND: Duration = Duration::from_secs(1);
const COUNT: HeaderName = HeaderName::from_static("x-attempt");

fn get(uri: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::from_static(uri);
    request
}

fn gate() -> CooldownLayer {
    CooldownLayer::new(Policy::default()).with_seed(1)
}

fn later(code: u16, seconds: &str) -> Answer {
    Answer::status(code).header("retry-after", seconds)
}

#[tokio::test(start_paused = true)]
async fn one_wish_refuses_the_other_calls_to_that_authority_until_its_time() -> Tested {
    for code in [429, 503] {
        let script = Script::of([later(code, "10"), Answer::status(200)]);
        let service = gate().layer(script.clone());
        let first = service.clone().oneshot(get("http://a.test/")).await?;
        assert_eq!(first.status().as_u16(), code, "it is handed on");
        let wanted = (Instant::now() + 10 * SECOND).into_std();
        for _ in 0..100 {
            let error = service.clone().oneshot(get("http://a.test/x")).await.unwrap_err();
            assert_eq!((error.kind(), error.fault()), (ErrorKind::CoolingDown, Fault::Local));
            let back = error.retry_at().ok_or("a moment to come back")?;
            assert!(back >= wanted && back <= wanted + 5 * SECOND / 2, "spread over a quarter");
        }
        assert_eq!(script.count(), 1);
        service.clone().oneshot(get("http://b.test/")).await?;
        assert_eq!(script.count(), 2, "another authority is another matter");
        advance(10 * SECOND).await;
        assert_eq!(service.oneshot(get("http://a.test/")).await?.status(), 200);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_of_the_kind_closes_nothing() -> Tested {
    let answers = [
        Answer::status(503),
        later(503, "soon"),
        later(503, "0"),
        later(500, "10"),
        later(301, "10"),
        later(200, "10"),
        Answer::fail(std::io::ErrorKind::ConnectionReset),
    ];
    let (number, script) = (answers.len(), Script::of(answers));
    let service = gate().layer(script.clone());
    for _ in 0..number {
        let _ = service.clone().oneshot(get("http://a.test/")).await;
    }
    assert_eq!(script.count(), number);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_held_go_staggered_and_never_early() -> Tested {
    let script = Script::of([later(429, "4"), Answer::status(200)]);
    let service = gate().holding(6 * SECOND).layer(script.clone());
    service.clone().oneshot(get("http://a.test/")).await?;
    let held = (0..50).map(|_| service.clone().oneshot(get("http://a.test/")));
    for response in join_all(held).await {
        assert_eq!(response?.status(), 200);
    }
    let went: Vec<_> = script.arrived().iter().skip(1).map(|it| it.at).collect();
    let (first, last) = (went.iter().min().unwrap(), went.iter().max().unwrap());
    assert!(*first >= 4 * SECOND, "{first:?} is early");
    assert!(*last <= 5 * SECOND + SECOND / 100, "{last:?} is late");
    assert!(*last - *first > SECOND / 2, "all within {:?}", *last - *first);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_would_be_held_too_long_is_refused_at_once() -> Tested {
    let script = Script::of([later(429, "10"), Answer::status(200)]);
    let service = gate().holding(SECOND).layer(script.clone());
    service.clone().oneshot(get("http://a.test/")).await?;
    let start = Instant::now();
    let error = service.oneshot(get("http://a.test/")).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::CoolingDown, Duration::ZERO));

    let script = Script::of([later(429, "2"), Answer::status(200)]);
    let service = gate().holding(10 * SECOND).layer(script);
    service.clone().oneshot(get("http://a.test/")).await?;
    let mut request = get("http://a.test/");
    request.extensions_mut().insert(Deadline::after(Instant::now().into_std(), SECOND));
    let error = service.oneshot(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CoolingDown, "its deadline comes before its turn");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_call_that_was_told_waits_by_its_own_retry_and_passes() -> Tested {
    let script = Script::of([later(503, "2"), Answer::status(200)]);
    let service = RetryLayer::new(Policy::default()).layer(gate().layer(script.clone()));
    let told = tokio::spawn(service.clone().oneshot(get("http://a.test/")));
    sleep(SECOND).await;
    let error = service.oneshot(get("http://a.test/")).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::CoolingDown, 0));
    let reason = error.report().and_then(abate::Report::stop_reason);
    assert_eq!(reason, Some(StopReason::Refused));
    assert_eq!(told.await??.status(), 200);
    assert!(script.arrived()[1].at >= 2 * SECOND);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_held_call_can_be_dropped_and_all_may_share_one_gate() -> Tested {
    let script = Script::of([later(429, "2"), Answer::status(200)]);
    let service = gate().with_scope(Scope::Shared).holding(9 * SECOND).layer(script.clone());
    service.clone().oneshot(get("http://a.test/")).await?;
    let held = service.clone().oneshot(get("http://b.test/"));
    assert!(tokio::time::timeout(SECOND, held).await.is_err());
    service.oneshot(get("http://c.test/")).await?;
    assert_eq!(script.count(), 2, "the dropped one never went");
    Ok(())
}

// ID-04
#[tokio::test(start_paused = true)]
async fn the_attempt_header_is_inserted_and_never_appended() -> Tested {
    let layer = RetryLayer::new(Policy::default()).without_budget().with_attempt_header(COUNT);
    let script = Script::of([Answer::status(503), Answer::status(503), Answer::status(200)]);
    let mut request = get("http://a.test/");
    request.headers_mut().append(COUNT, HeaderValue::from_static("7"));
    request.headers_mut().append(COUNT, HeaderValue::from_static("8"));
    layer.layer(layer.layer(script.clone())).oneshot(request).await?;
    let told: Vec<Vec<_>> = script
        .arrived()
        .iter()
        .map(|it| it.headers.get_all(COUNT).iter().cloned().collect())
        .collect();
    assert_eq!(told, [["1"], ["2"], ["3"]], "also through a second one, which stands down");
    Ok(())
}

// AM-01
#[tokio::test(start_paused = true)]
async fn a_retry_in_another_task_stands_down_if_it_may_know() -> Tested {
    let retries = || RetryLayer::new(Policy::default()).without_budget();
    let script = Script::of([Answer::status(503)]);
    let inner = Buffer::new(retries().layer(script.clone()), 8);
    retries().through_spawned_layers().layer(inner).oneshot(get("http://a.test/")).await?;
    assert_eq!(script.count(), 3);
    let numbers: Vec<_> =
        script.arrived().iter().filter_map(|it| it.current.map(Attempt::number)).collect();
    assert_eq!(numbers, [1, 2, 3], "those below it are told as well");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_deadline_reaches_another_task_if_it_may_be_known() -> Tested {
    let script = Script::of([Answer::status(200)]);
    let retries = RetryLayer::new(Policy::default()).through_spawned_layers();
    let service = abate::DeadlineLayer::new(2 * SECOND).layer(retries.layer(script.clone()));
    let end = Instant::now() + 2 * SECOND;
    service.oneshot(get("http://a.test/")).await?;
    let told = script.arrived()[0].extensions.get::<Deadline>().copied();
    assert_eq!(told, Some(Deadline::at(end.into_std())));
    Ok(())
}
