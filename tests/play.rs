//! Bodies that are played beat by beat, and watched.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// One step of a body.
#[derive(Debug, Clone)]
pub enum Beat {
    /// A frame of data.
    Data(Bytes),
    /// The same frame again and again, without end.
    Endless(Bytes),
    /// Nothing for a while.
    Pause(Duration),
    /// Trailers.
    Trailers(HeaderMap),
    /// The connection breaks.
    Break,
    /// Nothing any more.
    Hang,
}

impl Beat {
    /// A frame of data.
    #[must_use]
    pub fn data(data: &'static str) -> Self {
        Self::Data(Bytes::from_static(data.as_bytes()))
    }

    /// Trailers with one field.
    #[must_use]
    pub fn trailer(name: &'static str, value: &'static str) -> Self {
        let mut trailers = HeaderMap::new();
        trailers.insert(name, HeaderValue::from_static(value));
        Self::Trailers(trailers)
    }
}

/// A body that plays its beats. It is honest about its size and its end.
#[derive(Debug)]
pub struct Played {
    beats: VecDeque<Beat>,
    sleep: Option<Pin<Box<Sleep>>>,
    start: Instant,
    watched: Watched,
    seat: Option<Seat>,
}

/// What became of a body.
#[derive(Debug, Clone, Default)]
pub struct Watched(Arc<Mutex<Seen>>);

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    read: usize,
    polls: usize,
    ended: bool,
    dropped: Option<Duration>,
}

impl Played {
    /// Plays `beats`; times count from `start`.
    #[must_use]
    pub fn new(beats: Vec<Beat>, start: Instant, seat: Seat) -> Self {
        let ended = beats.is_empty();
        let watched = Watched::default();
        watched.note(|seen| seen.ended = ended);
        let seat = (!ended).then_some(seat);
        Self { beats: beats.into(), sleep: None, start, watched, seat }
    }

    /// Tells what becomes of it.
    #[must_use]
    pub fn watched(&self) -> Watched {
        self.watched.clone()
    }

    fn poll_beat(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let Some(beat) = self.beats.front() else { return Poll::Ready(None) };
            let frame = match beat.clone() {
                Beat::Hang => return Poll::Pending,
                Beat::Endless(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Beat::Pause(length) => {
                    let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(length)));
                    ready!(sleep.as_mut().poll(cx));
                    self.sleep = None;
                    None
                }
                Beat::Data(data) => Some(Ok(Frame::data(data))),
                Beat::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
                Beat::Break => Some(Err(io::ErrorKind::ConnectionReset.into())),
            };
            self.beats.pop_front();
            if frame.is_some() {
                return Poll::Ready(frame);
            }
        }
    }
}

impl Body for Played {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.watched.note(|seen| seen.polls += 1);
        let frame = ready!(self.poll_beat(cx));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        let (length, ended) = (data.map_or(0, Bytes::len), self.beats.is_empty());
        self.watched.note(|seen| {
            seen.read += length;
            seen.ended = ended;
        });
        if ended {
            self.seat = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.beats.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let lengths = self.beats.iter().map(|beat| match beat {
            Beat::Data(data) => Some(data.len() as u64),
            _ => None,
        });
        lengths.sum::<Option<u64>>().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let at = self.start.elapsed();
        self.watched.note(|seen| seen.dropped = Some(at));
    }
}

impl Watched {
    /// The bytes that were read.
    #[must_use]
    pub fn read(&self) -> usize {
        self.seen().read
    }

    /// How often it was polled.
    #[must_use]
    pub fn polls(&self) -> usize {
        self.seen().polls
    }

    /// Whether it came to its end.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.seen().ended
    }

    /// When it was dropped.
    #[must_use]
    pub fn dropped(&self) -> Option<Duration> {
        self.seen().dropped
    }

    fn seen(&self) -> Seen {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Counts what is open at one time.
#[derive(Debug, Default)]
pub struct Seats {
    taken: AtomicUsize,
    most: AtomicUsize,
}

/// One that is open, until it is dropped.
#[derive(Debug)]
pub struct Seat(Arc<Seats>);

impl Seats {
    /// Opens one.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Seat {
        // Relaxed: counts that are read when all is quiet.
        let taken = self.taken.fetch_add(1, Relaxed) + 1;
        self.most.fetch_max(taken, Relaxed);
        Seat(Arc::clone(self))
    }

    /// How many are open.
    #[must_use]
    pub fn taken(&self) -> usize {
        // Relaxed: as above.
        self.taken.load(Relaxed)
    }

    /// The most that were open at one time.
    #[must_use]
    pub fn most(&self) -> usize {
        // Relaxed: as above.
        self.most.load(Relaxed)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Relaxed: as in `take`.
        self.0.taken.fetch_sub(1, Relaxed);
    }
}
