//! When a retry is sent, and when it no longer is.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use abate::StopReason;
use abate::{AttemptTimeoutLayer, Deadline, ErrorKind, Policy, ReplayBody, Report, RetryLayer};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::time::{Instant, advance};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::{Tested, get, millis, report, retries, seconds, stop, unpaid, waits};

fn in_time(length: Duration) -> Deadline {
    Deadline::after(Instant::now().into_std(), length)
}

// TO-06, RA-10
#[tokio::test(start_paused = true)]
async fn no_retry_starts_that_cannot_end_in_time() -> Tested {
    for (took, base, attempts) in [(29_900, 40, 2), (29_900, 60, 1), (29_949, 1, 2), (29_960, 1, 1)]
    {
        let script = Script::of([Answer::status(503).after(millis(took)), Answer::status(200)]);
        let layer = unpaid(waits(millis(base)))?;
        let response = layer.layer(script.clone()).oneshot(get()).await?;
        assert_eq!(script.count(), attempts, "{took} + {base}");
        if attempts == 1 {
            assert_eq!(response.status(), 503);
            assert_eq!(stop(&response), Some(StopReason::Deadline));
            assert_eq!(script.elapsed(), millis(took), "at once");
        }
    }
    Ok(())
}

// TO-06
#[tokio::test(start_paused = true)]
async fn a_calls_time_starts_with_the_call_and_not_with_the_layer() -> Tested {
    let late = Answer::status(503).after(millis(29_900));
    let script = Script::of([late.clone(), Answer::status(200), late, Answer::status(200)]);
    let layer = unpaid(waits(millis(40)))?;
    advance(seconds(3_600)).await;
    let service = layer.layer(script.clone());
    for attempts in [2, 4] {
        advance(seconds(3_600)).await;
        let response = service.clone().oneshot(get()).await?;
        assert_eq!((response.status().as_u16(), script.count()), (200, attempts));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_counts_when_it_is_the_earlier_one() -> Tested {
    for (deadline, took, attempts) in [(5, 4_800, 2), (5, 4_950, 1), (100, 29_950, 1)] {
        let script = Script::of([Answer::status(503).after(millis(took)), Answer::status(200)]);
        let mut request = get();
        request.extensions_mut().insert(in_time(seconds(deadline)));
        let layer = unpaid(waits(millis(40)))?;
        let response = layer.layer(script.clone()).oneshot(request).await?;
        assert_eq!(script.count(), attempts, "{deadline} s");
        let reason = (attempts == 1).then_some(StopReason::Deadline);
        assert_eq!(stop(&response), reason);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_callers_deadline_cuts_the_attempt_below_and_ends_the_call() -> Tested {
    let script = Script::of([Answer::status(503).after(seconds(1)), Answer::hang()]);
    let below = AttemptTimeoutLayer::new(seconds(10)).layer(script.clone());
    let mut request = get();
    request.extensions_mut().insert(in_time(seconds(3)));
    let error = retries(3)?.layer(below).oneshot(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Deadline));
    assert_eq!((script.elapsed(), script.count()), (seconds(3), 2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_is_not_cut_by_the_retry() -> Tested {
    let script = Script::of([Answer::status(200).after(seconds(60))]);
    let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
    assert_eq!((response.status().as_u16(), script.elapsed()), (200, seconds(60)));
    Ok(())
}

/// The moments at which `calls` calls, one after the other, sent their attempts.
async fn moments(layer: RetryLayer, calls: usize) -> Result<Vec<Duration>, abate::Error> {
    let script = Script::of([Answer::status(503)]);
    let service = layer.layer(script.clone());
    for _ in 0..calls {
        service.clone().oneshot(get()).await?;
    }
    Ok(script.arrived().iter().map(|it| it.at).collect())
}

#[tokio::test(start_paused = true)]
async fn a_seed_draws_the_same_waits_again() -> Tested {
    let seeded = |seed| RetryLayer::new(Policy::default()).without_budget().with_seed(seed);
    let first = moments(seeded(7), 4).await?;
    assert_eq!(moments(seeded(7), 4).await?, first);
    assert_ne!(moments(seeded(8), 4).await?, first);
    let unseeded = || RetryLayer::new(Policy::default()).without_budget();
    assert_ne!(moments(unseeded(), 4).await?, moments(unseeded(), 4).await?);
    let gaps = |call: usize| [first[3 * call + 1] - first[3 * call], first[3 * call + 2]];
    assert_ne!(gaps(0)[0], gaps(1)[0], "each call draws its own");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waits_fill_their_range_which_doubles_up_to_the_cap() -> Tested {
    let mut total = [Duration::ZERO; 4];
    for seed in 0..200 {
        let policy = Policy::builder().with_attempts(5).with_cap(millis(400)).build()?;
        let layer = RetryLayer::new(policy).without_budget().with_seed(seed);
        let response = layer.layer(Script::of([Answer::status(503)])).oneshot(get()).await?;
        let told = report(&response).cloned().unwrap_or_default();
        for (n, tried) in told.tried()[1..].iter().enumerate() {
            assert!(tried.waited() <= millis([100, 200, 400, 400][n] + 2));
            total[n] += tried.waited();
        }
    }
    for (total, most) in total.into_iter().zip([100, 200, 400, 400]) {
        let mean = total / 200;
        assert!(mean > millis(most * 2 / 5) && mean < millis(most * 3 / 5), "{mean:?} of {most}");
    }
    Ok(())
}

type Sent = Request<ReplayBody<Full<Bytes>>>;

/// Ready at once, but its clones are not: never, or with an error.
#[derive(Debug)]
struct Shy {
    script: Script,
    broken: bool,
    is_clone: bool,
}

impl Clone for Shy {
    fn clone(&self) -> Self {
        Self { script: self.script.clone(), broken: self.broken, is_clone: true }
    }
}

impl Service<Sent> for Shy {
    type Response = <Script as Service<Sent>>::Response;
    type Error = BoxError;
    type Future = <Script as Service<Sent>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match (self.is_clone, self.broken) {
            (false, _) => Poll::Ready(Ok(())),
            (true, false) => Poll::Pending,
            (true, true) => Poll::Ready(Err(io::Error::from(io::ErrorKind::BrokenPipe).into())),
        }
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        self.script.call(request)
    }
}

// TC-02
#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_get_ready_again_ends_the_call_in_time() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let shy = Shy { script: script.clone(), broken: false, is_clone: false };
    let error = retries(3)?.layer(shy).oneshot(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RetryRefused(StopReason::Deadline));
    assert_eq!((script.count(), error.attempts()), (1, 1));
    assert_eq!(script.elapsed(), seconds(30));
    Ok(())
}

// TC-02
#[tokio::test(start_paused = true)]
async fn a_service_that_is_broken_when_it_is_needed_again_ends_the_call_with_its_error() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let shy = Shy { script: script.clone(), broken: true, is_clone: false };
    let error = retries(3)?.layer(shy).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts(), script.count()), (ErrorKind::Client, 1, 1));
    let source = std::error::Error::source(&error).and_then(|it| it.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::BrokenPipe));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_without_a_wait_goes_through_no_timer() -> Tested {
    let script = Script::of([Answer::status(503), Answer::status(200)]);
    let policy = Policy::builder().with_backoff(abate::Backoff::NONE).build()?;
    let mut call =
        tokio_test::task::spawn(RetryLayer::new(policy).layer(script.clone()).oneshot(get()));
    let response = tokio_test::assert_ready!(call.poll())?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 2));
    Ok(())
}
