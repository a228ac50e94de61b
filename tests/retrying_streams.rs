//! Attempts that end amid their request: the next one needs the body that the last one still has.

use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use abate::{AttemptTimeoutLayer, Jitter, Policy, PolicyBuilder, Report, RetryLayer, StopReason};
use abate_tests::play::{Beat, Played, Seats, Watched};
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::{Tested, millis, read, report, request, seconds, stop, unpaid, waits};

const WHOLE: &[u8] = b"onetwothreefour";

/// What an attempt does with its request.
#[derive(Debug, Clone, Copy)]
struct Act {
    /// The frames that it reads before it answers.
    reads: usize,
    then: Then,
    /// `None` is an error.
    status: Option<u16>,
    /// Whether the answer has a body.
    talks: bool,
    /// Its `Retry-After`.
    later: Option<&'static str>,
}

/// What becomes of the request when its attempt has answered.
#[derive(Debug, Clone, Copy)]
enum Then {
    Drops,
    /// Another task holds it for so long.
    Holds(Duration),
    /// Another task reads on, and drops it at its end.
    ReadsOn,
    /// There is no answer.
    Hangs,
}

const LAST: Act =
    Act { reads: usize::MAX, then: Then::Drops, status: Some(200), talks: false, later: None };

fn busy(reads: usize, then: Then) -> Act {
    Act { reads, then, status: Some(503), talks: false, later: None }
}

/// A client whose n-th attempt does the n-th of some acts, and then the last for ever.
#[derive(Clone)]
struct Client(Arc<Stage>);

struct Stage {
    start: Instant,
    acts: Vec<Act>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// When each attempt came, and what it has read.
    attempts: Vec<(Duration, Vec<u8>)>,
    answers: Vec<Watched>,
}

impl Client {
    fn of(acts: impl Into<Vec<Act>>) -> Self {
        let (start, seen) = (Instant::now(), Mutex::default());
        Self(Arc::new(Stage { start, acts: acts.into(), seen }))
    }

    fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> T {
        note(&mut self.0.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn attempts(&self) -> Vec<(Duration, Vec<u8>)> {
        self.note(|seen| seen.attempts.clone())
    }

    /// What each attempt has read.
    fn bodies(&self) -> Vec<Vec<u8>> {
        self.attempts().into_iter().map(|(_, body)| body).collect()
    }
}

impl<B> Service<Request<B>> for Client
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Response = Response<Played>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Played>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (client, mut body) = (self.clone(), request.into_body());
        let nth = self.note(|seen| {
            seen.attempts.push((client.0.start.elapsed(), Vec::new()));
            seen.attempts.len() - 1
        });
        let act = client.0.acts[nth.min(client.0.acts.len() - 1)];
        Box::pin(async move {
            client.read(nth, &mut body, act.reads).await?;
            match act.then {
                Then::Drops => drop(body),
                Then::Hangs => pending().await,
                Then::Holds(length) => drop(tokio::spawn(async move {
                    sleep(length).await;
                    drop(body);
                })),
                Then::ReadsOn => {
                    let client = client.clone();
                    tokio::spawn(async move { client.read(nth, &mut body, usize::MAX).await });
                }
            }
            let status = act.status.ok_or(io::Error::from(io::ErrorKind::ConnectionReset))?;
            let beats = if act.talks { vec![Beat::data("why"), Beat::data("not")] } else { vec![] };
            let answer = Played::new(beats, client.0.start, Arc::new(Seats::default()).take());
            client.note(|seen| seen.answers.push(answer.watched()));
            let response = Response::builder().status(status);
            Ok(match act.later {
                Some(later) => response.header("retry-after", later).body(answer)?,
                None => response.body(answer)?,
            })
        })
    }
}

impl Client {
    async fn read<B>(&self, nth: usize, body: &mut B, frames: usize) -> Result<(), BoxError>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        for _ in 0..frames {
            let Some(frame) = body.frame().await else { break };
            let frame = frame.map_err(Into::into)?;
            let data = frame.data_ref().map(|data| data.to_vec()).unwrap_or_default();
            self.note(|seen| seen.attempts[nth].1.extend_from_slice(&data));
        }
        Ok(())
    }
}

/// Four frames, one every `pause`.
fn slow(pause: Duration) -> Request<impl Body<Data = Bytes, Error = BoxError> + Unpin + Send> {
    let frames = stream::unfold(["one", "two", "three", "four"].into_iter(), move |mut left| {
        Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            Some((Ok(Frame::data(Bytes::from(left.next()?))), left))
        })
    });
    request(Method::PUT).map(|_| StreamBody::new(frames))
}

fn at_once() -> Request<impl Body<Data = Bytes, Error = BoxError> + Unpin + Send> {
    slow(Duration::ZERO)
}

/// Retries after exactly 200 ms, paid by nobody.
fn steady() -> Result<RetryLayer, BoxError> {
    Ok(unpaid(waits(millis(200)))?)
}

// BR-01, BR-04
#[tokio::test(start_paused = true)]
async fn a_request_that_was_read_in_part_is_read_whole_by_the_next_attempt() -> Tested {
    for status in [Some(503), None] {
        for reads in 0..=5 {
            let first = Act { status, ..busy(reads, Then::Drops) };
            let client = Client::of([first, Act { reads: 2, ..first }, LAST]);
            let response = steady()?.layer(client.clone()).oneshot(at_once()).await?;
            assert_eq!(response.status(), 200);
            let bodies = client.bodies();
            assert_eq!(bodies.len(), 3);
            assert_eq!(bodies[2], WHOLE, "after {reads} frames");
            assert!(bodies.iter().all(|part| WHOLE.starts_with(part)));
        }
    }
    Ok(())
}

// BR-01
#[tokio::test(start_paused = true)]
async fn an_attempt_that_timed_out_amid_the_upload_leaves_the_rest_to_the_next() -> Tested {
    let client = Client::of([busy(2, Then::Hangs), LAST]);
    let timed = AttemptTimeoutLayer::new(millis(100)).layer(client.clone());
    let response = steady()?.layer(timed).oneshot(slow(millis(10))).await?;
    assert_eq!(
        (response.status().as_u16(), report(&response).map(Report::attempts)),
        (200, Some(2))
    );
    assert_eq!(client.bodies(), [b"onetwo", WHOLE]);
    Ok(())
}

// BR-04
#[tokio::test(start_paused = true)]
async fn a_retry_waits_through_its_backoff_for_the_body_to_come_back() -> Tested {
    for status in [Some(503), None] {
        let first = Act { status, ..busy(1, Then::Holds(millis(199))) };
        let client = Client::of([first, LAST]);
        let response = steady()?.layer(client.clone()).oneshot(at_once()).await?;
        assert_eq!(response.status(), 200);
        let attempts = client.attempts();
        assert_eq!(attempts[1], (millis(200), WHOLE.to_vec()), "and no longer than that");
        let waited = report(&response).map(Report::waited);
        assert_eq!(waited, Some(millis(200)));
    }
    Ok(())
}

// BR-04
#[tokio::test(start_paused = true)]
async fn a_retry_whose_body_does_not_come_back_is_not_made_and_the_answer_is_whole() -> Tested {
    for (talks, until) in [(false, millis(200)), (true, millis(50))] {
        let first = Act { talks, ..busy(1, Then::Holds(seconds(9))) };
        let client = Client::of([first, LAST]);
        let response = steady()?.layer(client.clone()).oneshot(at_once()).await?;
        assert_eq!(response.status(), 503);
        let told = report(&response).cloned().unwrap_or_default();
        assert_eq!((told.attempts(), told.elapsed()), (1, until));
        assert_eq!(told.stop_reason(), Some(StopReason::BodyNotReplayable));
        assert_eq!(client.attempts().len(), 1);
        let polls = client.note(|seen| seen.answers[0].polls());
        assert_eq!(polls, 0, "nobody has touched it");
        assert_eq!(read(response).await?, if talks { "whynot" } else { "" });
    }
    let first = Act { status: None, ..busy(1, Then::Holds(seconds(9))) };
    let client = Client::of([first, LAST]);
    let error = steady()?.layer(client.clone()).oneshot(at_once()).await.unwrap_err();
    assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<io::Error>()));
    let reason = error.report().and_then(Report::stop_reason);
    assert_eq!((reason, error.attempts()), (Some(StopReason::BodyNotReplayable), 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_backoff_the_body_is_waited_for_as_long_as_a_client_takes_to_let_go() -> Tested {
    for (held, status) in [(20, 200), (49, 200), (51, 503)] {
        let client = Client::of([busy(1, Then::Holds(millis(held))), LAST]);
        let none = Policy::builder().with_backoff(abate::Backoff::NONE);
        let response = unpaid(none)?.layer(client.clone()).oneshot(at_once()).await?;
        assert_eq!(response.status(), status, "held for {held} ms");
        let second = client.attempts().get(1).map(|(at, _)| *at);
        assert_eq!(second, (status == 200).then(|| millis(held)), "at once when it is let go");
    }
    Ok(())
}

// BR-04
#[tokio::test(start_paused = true)]
async fn an_upload_that_goes_on_after_the_answer_is_all_in_the_retry() -> Tested {
    let client = Client::of([busy(1, Then::ReadsOn), LAST]);
    let response = steady()?.layer(client.clone()).oneshot(slow(millis(30))).await?;
    assert_eq!(response.status(), 200);
    assert_eq!(client.bodies(), [WHOLE, WHOLE]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_goes_on_past_what_is_recorded_ends_the_call_with_its_answer() -> Tested {
    let chunk = |_| Ok::<_, BoxError>(Frame::data(Bytes::from(vec![7; 10_000])));
    let long = StreamBody::new(stream::iter((0..20).map(chunk)));
    let client = Client::of([busy(1, Then::ReadsOn), LAST]);
    let put = request(Method::PUT).map(|_| long);
    let response = steady()?.layer(client.clone()).oneshot(put).await?;
    assert_eq!(response.status(), 503);
    assert_eq!(stop(&response), Some(StopReason::BodyNotReplayable));
    assert_eq!(client.bodies(), [vec![7; 200_000]], "the upload itself is not disturbed");
    Ok(())
}

fn paid(policy: PolicyBuilder) -> Result<RetryLayer, BoxError> {
    Ok(RetryLayer::new(policy.build()?).with_seed(1))
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_made_gives_its_token_back_whoever_ends_it() -> Tested {
    let layer = paid(waits(millis(200)))?;
    let tokens = || layer.budget().map_or(0.0, |budget| budget.tokens());
    let before = tokens();
    let client = Client::of([busy(1, Then::Holds(seconds(9)))]);
    let service = layer.layer(client.clone());
    assert_eq!(service.clone().oneshot(at_once()).await?.status(), 503);
    assert!(tokens() >= before, "{} of {before}", tokens());
    // And when the caller goes while the body is waited for.
    let gone = timeout(millis(100), service.oneshot(at_once())).await;
    assert!(gone.is_err());
    assert!(tokens() >= before, "{} of {before}", tokens());
    assert_eq!(client.attempts().len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_made_still_tells_when_the_server_wants_to_be_called() -> Tested {
    let first = Act { later: Some("3"), ..busy(1, Then::Holds(seconds(9))) };
    let client = Client::of([first, LAST]);
    let start = std::time::Instant::from(Instant::now());
    let response = steady()?.layer(client.clone()).oneshot(at_once()).await?;
    let told = report(&response).cloned().unwrap_or_default();
    assert_eq!(told.stop_reason(), Some(StopReason::BodyNotReplayable));
    assert_eq!(told.retry_at(), Some(start + seconds(3)));
    // What is asked for and up to a quarter more is waited for, and no longer.
    assert!((3_000..=3_750).contains(&told.elapsed().as_millis()), "{told}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_must_end_soon_keeps_its_answer_rather_than_wait_for_the_body() -> Tested {
    // There is time for the retry now, and not in 50 ms.
    let policy = Policy::builder().with_base(millis(1)).with_jitter(Jitter::None);
    let policy = policy.with_attempt_timeout(millis(60)).with_total_timeout(millis(60));
    let client = Client::of([busy(1, Then::Holds(millis(30))), LAST]);
    let response = unpaid(policy)?.layer(client.clone()).oneshot(at_once()).await?;
    assert_eq!(response.status(), 503);
    assert_eq!(stop(&response), Some(StopReason::BodyNotReplayable));
    assert_eq!(report(&response).map(Report::elapsed), Some(millis(1)));
    Ok(())
}
