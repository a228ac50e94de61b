//! Attempt timeout and deadline.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate::{AttemptTimeoutLayer, ConcurrencyLimitLayer, DeadlineLayer, Error, ErrorKind, Fault};
use abate::{Policy, RetryLayer};
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use futures_util::future::join;
use http_body_util::BodyExt;
use tower::{BoxError, Layer, Service, ServiceExt};

use super::{Tested, get, get_within, kind, millis, seconds};

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_ends_at_its_timeout() -> Tested {
    let script = Script::of([Answer::hang()]);
    let service = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::AttemptTimeout, Fault::Ambiguous));
    assert_eq!((script.elapsed(), script.open()), (seconds(2), 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_is_tried_again() -> Tested {
    let script = Script::of([Answer::hang(), Answer::status(200)]);
    let below = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
    let response = RetryLayer::new(Policy::default()).layer(below).oneshot(get()).await?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 2));
    assert!(script.arrived()[1].at >= seconds(2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_the_last_moment_is_an_answer() -> Tested {
    let script = Script::of([Answer::status(200).after(seconds(2))]);
    let timeout = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
    assert_eq!(timeout.oneshot(get()).await?.status(), 200);
    let deadline = DeadlineLayer::new(seconds(2)).layer(script);
    assert_eq!(deadline.oneshot(get()).await?.status(), 200);
    Ok(())
}

// TO-08
#[tokio::test(start_paused = true)]
async fn a_body_may_take_longer_than_its_head() -> Tested {
    let body = [Beat::data("one"), Beat::Pause(millis(50)), Beat::data("two")];
    let script = Script::of([Answer::status(200).body(body).after(millis(40))]);
    let timeout = AttemptTimeoutLayer::new(millis(50)).layer(script.clone());
    let response = timeout.oneshot(get()).await?;
    assert_eq!(response.into_body().collect().await?.to_bytes(), "onetwo");
    assert_eq!(script.elapsed(), millis(90));
    let deadline = DeadlineLayer::new(millis(50)).layer(script.clone());
    let response = deadline.oneshot(get()).await?;
    assert_eq!(response.into_body().collect().await?.to_bytes(), "onetwo");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_clipped_by_the_deadline_of_its_call() -> Tested {
    for (deadline, timeout, ends, as_kind) in [
        (2, 10, 2, ErrorKind::Deadline),
        (10, 2, 2, ErrorKind::AttemptTimeout),
        (2, 2, 2, ErrorKind::AttemptTimeout),
    ] {
        let script = Script::of([Answer::hang()]);
        let below = AttemptTimeoutLayer::new(seconds(timeout)).layer(script.clone());
        let service = DeadlineLayer::new(seconds(deadline)).layer(below);
        let result = service.oneshot(get()).await;
        assert_eq!(kind(&result), Some(as_kind), "{timeout} s within {deadline} s");
        assert_eq!(script.elapsed(), seconds(ends));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline_with_whatever_is_below() -> Tested {
    let script = Script::of([Answer::hang()]);
    let result = DeadlineLayer::new(seconds(3)).layer(script.clone()).oneshot(get()).await;
    assert_eq!(kind(&result), Some(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), script.open()), (seconds(3), 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_several_deadlines_the_earliest_counts() -> Tested {
    for (outer, inner, own, ends) in [(5, 9, 9, 5), (9, 5, 9, 5), (9, 9, 5, 5), (5, 9, 60, 5)] {
        let script = Script::of([Answer::hang()]);
        let below = DeadlineLayer::new(seconds(inner)).layer(script.clone());
        let service = DeadlineLayer::new(seconds(outer)).layer(below);
        let result = service.oneshot(get_within(seconds(own))).await;
        assert_eq!(kind(&result), Some(ErrorKind::Deadline));
        assert_eq!(script.elapsed(), seconds(ends), "{outer} s, {inner} s and {own} s");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_never_sent() -> Tested {
    let script = Script::of([Answer::status(200)]);
    let late = DeadlineLayer::new(seconds(3)).layer(script.clone()).oneshot(get_within(millis(0)));
    assert_eq!(kind(&late.await), Some(ErrorKind::Deadline));
    let never = DeadlineLayer::new(millis(0)).layer(script.clone()).oneshot(get());
    assert_eq!(kind(&never.await), Some(ErrorKind::Deadline));
    assert_eq!(script.count(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_below_starts_nothing_that_would_be_cut() -> Tested {
    let script = Script::of([Answer::status(503).after(millis(2_960)), Answer::status(200)]);
    let retry = RetryLayer::new(Policy::default()).layer(script.clone());
    let response = DeadlineLayer::new(seconds(3)).layer(retry).oneshot(get()).await?;
    assert_eq!((response.status().as_u16(), script.count()), (503, 1));
    assert_eq!(script.elapsed(), millis(2_960));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_is_called_after_a_wait_still_knows_the_deadline() -> Tested {
    let first = Answer::status(200).body([Beat::Pause(seconds(1)), Beat::data("done")]);
    let script = Script::of([first, Answer::status(503).after(millis(1_960))]);
    let retry = RetryLayer::new(Policy::default()).layer(script.clone());
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(9)).layer(retry);
    let held = limit.clone().oneshot(get()).await?;
    let call = DeadlineLayer::new(seconds(3)).layer(limit).oneshot(get());
    let (response, body) = join(call, held.into_body().collect()).await;
    body?;
    assert_eq!(response?.status(), 503, "no retry that would be cut");
    assert_eq!((script.count(), script.elapsed()), (2, millis(2_960)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_error_from_below_is_passed_on() -> Tested {
    let script = Script::of([Answer::fail(io::ErrorKind::ConnectionRefused)]);
    let timeout = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
    let error = DeadlineLayer::new(seconds(3)).layer(timeout).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Unsent));
    let boxed: BoxError = error.into();
    let source = boxed.source().and_then(|it| it.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::ConnectionRefused));
    assert!(Error::find(boxed.as_ref()).is_some());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_longer_than_any_clock_never_ends_an_attempt() -> Tested {
    let script = Script::of([Answer::status(200).after(seconds(86_400))]);
    let timeout = AttemptTimeoutLayer::new(std::time::Duration::MAX).layer(script.clone());
    let deadline = DeadlineLayer::new(std::time::Duration::MAX).layer(timeout);
    assert_eq!(deadline.oneshot(get()).await?.status(), 200);
    Ok(())
}

/// Polls the call below as often as `polls` says, then is pending for ever, and has dropped it or not.
#[derive(Clone)]
struct Forgetful<S> {
    inner: S,
    polls: usize,
    drops: bool,
}

impl<S, R> Service<R> for Forgetful<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (mut left, drops) = (self.polls, self.drops);
        let mut call = Some(Box::pin(self.inner.call(request)));
        Box::pin(poll_fn(move |cx| {
            if left > 0 {
                left -= 1;
                if let Some(call) = &mut call
                    && let Poll::Ready(result) = call.as_mut().poll(cx)
                {
                    return Poll::Ready(result);
                }
            }
            if drops && left == 0 {
                call = None;
            }
            Poll::Pending
        }))
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_relies_on_a_timer_below_only_as_long_as_it_runs() -> Tested {
    for (polls, drops) in [(1, true), (1, false), (2, true), (0, true), (9, false)] {
        let script = Script::of([Answer::hang()]);
        let inner = AttemptTimeoutLayer::new(seconds(2)).layer(script.clone());
        // A timer of the caller's keeps the clock going, and polls the call again meanwhile.
        let service = DeadlineLayer::new(seconds(3)).layer(Forgetful { inner, polls, drops });
        let call = tokio::time::timeout(seconds(9), service.oneshot(get()));
        let result = call.await.map_err(|_| format!("{polls} polls, {drops}: it never ended"))?;
        let expected = if polls > 1 { ErrorKind::AttemptTimeout } else { ErrorKind::Deadline };
        assert_eq!(kind(&result), Some(expected), "{polls} polls, {drops}");
        let at = if polls > 1 { seconds(2) } else { seconds(3) };
        assert_eq!(script.elapsed(), at, "{polls} polls, {drops}");
    }
    Ok(())
}
