//! A service that answers by a script and tells what arrived.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, pending};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use abate::Attempt;
use bytes::{Bytes, BytesMut};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http::{Uri, Version};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Service};

use crate::events;
use crate::play::{Beat, Played, Seats, Watched};

/// An HTTP client that never leaves the process. Clones play the same script.
///
/// It is ready at all times; each call is one attempt, recorded when it is called.
#[derive(Clone)]
pub struct Script {
    stage: Arc<Stage>,
}

struct Stage {
    start: Instant,
    cue: Box<dyn Fn(usize) -> Answer + Send + Sync>,
    per_path: bool,
    seats: Arc<Seats>,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    arrived: Vec<Arrived>,
    of_path: HashMap<String, usize>,
    bodies: Vec<Watched>,
}

/// What one attempt is answered with.
#[derive(Debug, Clone)]
pub struct Answer {
    after: Duration,
    end: End,
}

#[derive(Debug, Clone)]
enum End {
    Respond { status: StatusCode, headers: HeaderMap, body: Vec<Beat> },
    Fail(io::ErrorKind),
    Hang,
}

/// What arrived with one attempt.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// From the making of the script.
    pub at: Duration,
    /// As sent.
    pub method: Method,
    /// As sent.
    pub uri: Uri,
    /// As sent.
    pub version: Version,
    /// As sent.
    pub headers: HeaderMap,
    /// As sent.
    pub extensions: Extensions,
    /// What the call context said.
    pub current: Option<Attempt>,
    /// The data of the body; `None` until it was read to its end.
    pub body: Option<Bytes>,
    /// The frames that the data came in.
    pub frames: usize,
    /// The trailers of the body.
    pub trailers: Option<HeaderMap>,
}

impl Script {
    /// Answers the first attempt with the first of `answers`, and so on; the last one is repeated.
    #[must_use]
    pub fn of(answers: impl Into<Vec<Answer>>) -> Self {
        Self::new(in_turn(answers.into()), false)
    }

    /// The same for each path by itself.
    #[must_use]
    pub fn per_path(answers: impl Into<Vec<Answer>>) -> Self {
        Self::new(in_turn(answers.into()), true)
    }

    /// Answers attempt `n`, from 0, with `cue(n)`.
    #[must_use]
    pub fn by(cue: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::new(cue, false)
    }

    fn new(cue: impl Fn(usize) -> Answer + Send + Sync + 'static, per_path: bool) -> Self {
        events::prepare();
        let (start, cue) = (Instant::now(), Box::new(cue));
        let (seats, log) = (Arc::default(), Mutex::default());
        Self { stage: Arc::new(Stage { start, cue, per_path, seats, log }) }
    }

    /// What has arrived so far, in order.
    #[must_use]
    pub fn arrived(&self) -> Vec<Arrived> {
        self.stage.log().arrived.clone()
    }

    /// How many attempts have arrived.
    #[must_use]
    pub fn count(&self) -> usize {
        self.stage.log().arrived.len()
    }

    /// The response bodies so far, in the order in which they were sent.
    #[must_use]
    pub fn bodies(&self) -> Vec<Watched> {
        self.stage.log().bodies.clone()
    }

    /// How many attempts are open: not answered, or answered with a body that neither came to its
    /// end nor was dropped.
    #[must_use]
    pub fn open(&self) -> usize {
        self.stage.seats.taken()
    }

    /// The most that were open at one time.
    #[must_use]
    pub fn most_open(&self) -> usize {
        self.stage.seats.most()
    }

    /// The time since the script was made.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.stage.start.elapsed()
    }
}

/// The last answer again and again, once all were given.
fn in_turn(answers: Vec<Answer>) -> impl Fn(usize) -> Answer {
    move |n| answers.get(n).or(answers.last()).cloned().unwrap_or_else(Answer::hang)
}

impl Stage {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter<B>(&self, request: &Request<B>) -> (usize, Answer) {
        let mut log = self.log();
        let of_path = log.of_path.entry(request.uri().path().to_owned()).or_default();
        let before = *of_path;
        *of_path += 1;
        let place = log.arrived.len();
        log.arrived.push(Arrived {
            at: self.start.elapsed(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
            extensions: request.extensions().clone(),
            current: Attempt::current(),
            body: None,
            frames: 0,
            trailers: None,
        });
        drop(log);
        (place, (self.cue)(if self.per_path { before } else { place }))
    }

    async fn read<B>(&self, place: usize, body: B) -> Result<(), BoxError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (mut body, mut data) = (pin!(body), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(Into::into)?;
            let arrived = &mut self.log().arrived[place];
            arrived.frames += 1;
            match frame.into_data() {
                Ok(more) => data.extend_from_slice(&more),
                Err(other) => arrived.trailers = other.into_trailers().ok(),
            }
        }
        self.log().arrived[place].body = Some(data.freeze());
        Ok(())
    }
}

impl<B> Service<Request<B>> for Script
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Played>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Played>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let stage = Arc::clone(&self.stage);
        let (place, answer) = stage.enter(&request);
        let seat = stage.seats.take();
        Box::pin(async move {
            stage.read(place, request.into_body()).await?;
            if !answer.after.is_zero() {
                sleep(answer.after).await;
            }
            match answer.end {
                End::Hang => pending().await,
                End::Fail(kind) => Err(io::Error::from(kind).into()),
                End::Respond { status, headers, body } => {
                    let played = Played::new(body, stage.start, seat);
                    stage.log().bodies.push(played.watched());
                    let mut response = Response::new(played);
                    *response.status_mut() = status;
                    *response.headers_mut() = headers;
                    Ok(response)
                }
            }
        })
    }
}

impl Answer {
    /// A response with an empty body.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a script that cannot be played is a mistake in a test")]
    pub fn status(code: u16) -> Self {
        let status = StatusCode::from_u16(code).expect("a status");
        let (headers, body) = (HeaderMap::new(), Vec::new());
        Self { after: Duration::ZERO, end: End::Respond { status, headers, body } }
    }

    /// An error of this kind: no response.
    #[must_use]
    pub const fn fail(kind: io::ErrorKind) -> Self {
        Self { after: Duration::ZERO, end: End::Fail(kind) }
    }

    /// Nothing, ever.
    #[must_use]
    pub const fn hang() -> Self {
        Self { after: Duration::ZERO, end: End::Hang }
    }

    /// The same, that much later.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// A response with one more header.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a script that cannot be played is a mistake in a test")]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        if let End::Respond { headers, .. } = &mut self.end {
            let value = HeaderValue::from_str(value).expect("a header value");
            headers.append(HeaderName::from_static(name), value);
        }
        self
    }

    /// A response with this body.
    #[must_use]
    pub fn body(mut self, beats: impl Into<Vec<Beat>>) -> Self {
        if let End::Respond { body, .. } = &mut self.end {
            *body = beats.into();
        }
        self
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("arrived", &self.count()).finish_non_exhaustive()
    }
}
