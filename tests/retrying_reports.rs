//! What a caller is told.

use std::error::Error as _;
use std::io;

use abate::{Deadline, Error, ErrorKind, Fault, Policy, Report, RetryLayer, StopReason};
use abate::{Tried, TriedResult};
use abate_tests::script::{Answer, Script};
use http::{Method, Request, StatusCode};
use http_body_util::StreamBody;
use tokio::time::Instant;
use tower::timeout::TimeoutLayer;
use tower::util::MapErrLayer;
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, millis, report, request, retries, seconds, stop, unpaid, waits};

#[tokio::test(start_paused = true)]
async fn a_success_at_once_carries_no_report() -> Tested {
    for code in [200, 204, 304, 404] {
        let script = Script::of([Answer::status(code)]);
        let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!(report(&response), None, "{code}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_success_after_retries_tells_what_went_before() -> Tested {
    let script = Script::of([
        Answer::status(503).after(millis(5)),
        Answer::fail(io::ErrorKind::ConnectionReset).after(millis(5)),
        Answer::status(200).after(millis(5)),
    ]);
    let response = unpaid(waits(millis(100)))?.layer(script.clone()).oneshot(get()).await?;
    let told = report(&response).cloned().unwrap_or_default();
    assert_eq!(told.attempts(), 3);
    assert_eq!(told.stop_reason(), None);
    assert_eq!(told.retry_at(), None);
    let results: Vec<_> = told.tried().iter().map(Tried::result).collect();
    let status = TriedResult::Status;
    let broken = TriedResult::Fault(Fault::Ambiguous);
    assert_eq!(results, [status(StatusCode::SERVICE_UNAVAILABLE), broken, status(StatusCode::OK)]);
    let waited: Vec<_> = told.tried().iter().map(Tried::waited).collect();
    assert_eq!(waited[0], millis(0));
    assert!((millis(100)..=millis(102)).contains(&waited[1]), "{waited:?}");
    assert!((millis(200)..=millis(202)).contains(&waited[2]), "{waited:?}");
    assert_eq!(told.waited(), waited.iter().sum());
    assert_eq!(told.elapsed(), script.elapsed());
    Ok(())
}

// TO-07
#[tokio::test(start_paused = true)]
async fn every_reason_to_stop_is_visible() -> Tested {
    let layer = || retries(3);
    let reason = async |layer: RetryLayer, request: Request<_>, answer: Answer| {
        let response = layer.layer(Script::of([answer])).oneshot(request).await?;
        Ok::<_, BoxError>((stop(&response), report(&response).map(Report::attempts)))
    };
    let of = |reason, attempts| (Some(reason), Some(attempts));

    let busy = Answer::status(503);
    assert_eq!(reason(layer()?, get(), busy.clone()).await?, of(StopReason::Attempts, 3));
    let never = Answer::status(501);
    assert_eq!(reason(layer()?, get(), never).await?, of(StopReason::NotRetryable, 1));
    let post = request(Method::POST);
    assert_eq!(reason(layer()?, post, busy.clone()).await?, of(StopReason::NotIdempotent, 1));
    let later = busy.clone().header("retry-after", "31");
    assert_eq!(reason(layer()?, get(), later).await?, of(StopReason::Deadline, 1));
    let poor = Policy::builder().with_attempts(2).with_budget_floor(0.0).build()?;
    let poor = RetryLayer::new(poor);
    assert_eq!(reason(poor.clone(), get(), busy.clone()).await?, of(StopReason::Attempts, 2));
    assert_eq!(reason(poor, get(), busy.clone()).await?, of(StopReason::Budget, 1));

    let more_than_is_recorded = http_body::Frame::data(vec![7; 65 * 1024].into());
    let frames = futures_util::stream::iter([Ok::<_, io::Error>(more_than_is_recorded)]);
    let streamed = get().map(|_| StreamBody::new(frames));
    let response = layer()?.layer(Script::of([busy])).oneshot(streamed).await?;
    assert_eq!(stop(&response), Some(StopReason::BodyNotReplayable));
    Ok(())
}

// TO-07
#[tokio::test(start_paused = true)]
async fn an_error_keeps_its_source_and_tells_of_all_attempts() -> Tested {
    let script = Script::of([Answer::status(503), Answer::fail(io::ErrorKind::ConnectionReset)]);
    let error = retries(3)?.layer(script.clone()).oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Client);
    assert_eq!(error.fault(), Fault::Ambiguous);
    assert_eq!(error.attempts(), 3);
    let told = error.report().cloned().unwrap_or_default();
    assert_eq!(told.stop_reason(), Some(StopReason::Attempts));
    assert_eq!(told.tried()[0].result(), TriedResult::Status(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(told.tried()[2].result(), TriedResult::Fault(Fault::Ambiguous));
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionReset));
    let text = error.to_string();
    assert!(text.starts_with("the client failed (3 attempts in "), "{text}");
    assert!(text.ends_with("; stopped: attempts)"), "{text}");
    let anyhow = anyhow::Error::from(error);
    assert!(anyhow.chain().any(|it| it.is::<io::Error>()), "the chain is whole");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_error_is_found_below_foreign_layers() -> Tested {
    let script = Script::of([Answer::fail(io::ErrorKind::ConnectionReset)]);
    let foreign = TimeoutLayer::new(seconds(60)).layer(retries(2)?.layer(script));
    let twice = |error: BoxError| io::Error::other(io::Error::other(error));
    let wrapped = MapErrLayer::new(twice).layer(foreign);
    let error = wrapped.oneshot(get()).await.unwrap_err();
    let ours = Error::find(&error).unwrap();
    assert_eq!((ours.kind(), ours.attempts()), (ErrorKind::Client, 2));
    Ok(())
}

// RA-10
#[tokio::test(start_paused = true)]
async fn a_hint_beyond_the_time_left_is_answered_at_once_with_the_moment_to_come_back() -> Tested {
    let script = Script::of([Answer::status(503).header("retry-after", "30").after(millis(100))]);
    let layer = RetryLayer::new(Policy::default());
    let tokens = layer.budget().unwrap().tokens();
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(Instant::now().into_std(), seconds(5)));
    let response = layer.layer(script.clone()).oneshot(request).await?;

    assert_eq!(response.status(), 503);
    assert_eq!(script.elapsed(), millis(100), "at once");
    let told = report(&response).cloned().unwrap_or_default();
    assert_eq!((told.stop_reason(), told.attempts()), (Some(StopReason::Deadline), 1));
    assert_eq!(told.retry_at(), Some((Instant::now() + seconds(30)).into_std()));
    assert_eq!(told.elapsed(), millis(100));
    let left = layer.budget().unwrap().tokens();
    assert!((left - tokens).abs() < 1e-6, "{left} tokens, where there were {tokens}");
    Ok(())
}
