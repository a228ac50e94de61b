//! A service that checks how it is called, and does what a test tells it to.
//!
//! It panics when it is called without having said itself, on that very instance, that it is
//! ready; a clone is not ready. It counts what is alive: reservations, futures and bodies.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use abate::Attempt;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;
use tower::Service;

use crate::plan::{Answer, Content, End, ProbeError, Readiness, Wait, When};

/// The service; see the [module](self).
#[derive(Debug)]
pub struct Probe {
    handle: ProbeHandle,
    readying: Option<Wait>,
    reserved: Option<Held>,
}

impl Probe {
    /// The n-th attempt of every call gets the n-th answer, and those after the last one get that.
    #[must_use]
    pub fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let handle = ProbeHandle { shared: Arc::default() };
        handle.answer(answers);
        Self { handle, readying: None, reserved: None }
    }

    /// The n-th time that an instance begins to get ready it goes like this, and afterwards it is
    /// ready at once.
    #[must_use]
    pub fn readying(self, script: impl IntoIterator<Item = Readiness>) -> Self {
        self.handle.ready(script);
        self
    }

    /// Tells what happens to the probe and its clones.
    #[must_use]
    pub fn handle(&self) -> ProbeHandle {
        self.handle.clone()
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self { handle: self.handle(), readying: None, reserved: None }
    }
}

impl<B> Service<Request<B>> for Probe {
    type Response = Response<ProbeBody>;
    type Error = ProbeError;
    type Future = ProbeFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ProbeError>> {
        if self.reserved.is_some() {
            return Poll::Ready(Ok(()));
        }
        if self.readying.is_none() {
            let next = self.handle.lock().readiness.pop_front();
            match next.unwrap_or(Readiness::Comes(When::NOW)) {
                Readiness::Fails => return Poll::Ready(Err(ProbeError::Readiness)),
                Readiness::Comes(when) => self.readying = Some(Wait::new(when)),
            }
        }
        if let Some(wait) = &mut self.readying {
            ready!(wait.poll(cx));
        }
        self.readying = None;
        self.reserved = Some(Held::new(&self.handle, |figures| &mut figures.reserved));
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ProbeFuture {
        assert!(self.reserved.take().is_some(), "called without being ready");
        let attempt = request.extensions().get().copied().map_or(1, Attempt::number);
        let live = Held::new(&self.handle, |figures| &mut figures.live);
        let mut figures = self.handle.lock();
        figures.calls.push(Instant::now());
        figures.most_live = figures.most_live.max(figures.live);
        let nth = (attempt as usize).min(figures.answers.len());
        let answer = figures.answers.get(nth.wrapping_sub(1)).copied();
        let answer = answer.unwrap_or_else(|| Answer::status(200));
        ProbeFuture { wait: Wait::new(answer.when), answer: Some(answer), live }
    }
}

/// The future of a [`Probe`].
#[derive(Debug)]
pub struct ProbeFuture {
    wait: Wait,
    answer: Option<Answer>,
    live: Held,
}

impl Future for ProbeFuture {
    type Output = Result<Response<ProbeBody>, ProbeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.wait.poll(cx));
        let answer = self.answer.take();
        assert!(answer.is_some(), "polled after its end");
        let Some(Answer { result, content, .. }) = answer else { return Poll::Pending };
        let body = ProbeBody::new(&self.live.handle, content);
        Poll::Ready(result.map(|status| {
            let mut response = Response::new(body);
            *response.status_mut() = status;
            response
        }))
    }
}

/// The body of a [`Probe`]'s answer: open until it has been read to its end or is dropped.
#[derive(Debug)]
pub struct ProbeBody {
    content: Content,
    wait: Wait,
    open: Option<Held>,
}

impl ProbeBody {
    fn new(handle: &ProbeHandle, content: Content) -> Self {
        let empty = matches!(content, Content { chunks: 0, end: End::Whole, .. });
        let open = (!empty).then(|| Held::new(handle, |figures| &mut figures.bodies));
        Self { content, wait: Wait::new(content.each), open }
    }
}

impl Body for ProbeBody {
    type Data = Bytes;
    type Error = ProbeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ProbeError>>> {
        if self.open.is_none() {
            return Poll::Ready(None);
        }
        ready!(self.wait.poll(cx));
        self.wait = Wait::new(self.content.each);
        if self.content.chunks > 0 {
            self.content.chunks -= 1;
            if let Content { chunks: 0, end: End::Whole, .. } = self.content {
                self.open = None;
            }
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"chunk")))));
        }
        match self.content.end {
            End::Never => return Poll::Pending,
            End::Broken | End::Whole => self.open = None,
        }
        Poll::Ready(Some(Err(ProbeError::Body)))
    }

    fn is_end_stream(&self) -> bool {
        self.open.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::from(self.content.chunks) * 5)
    }
}

/// What there is to know of a probe and its clones.
#[derive(Debug, Clone)]
pub struct ProbeHandle {
    shared: Arc<Mutex<Figures>>,
}

#[derive(Debug, Default)]
struct Figures {
    answers: Vec<Answer>,
    readiness: VecDeque<Readiness>,
    calls: Vec<Instant>,
    reserved: usize,
    live: usize,
    most_live: usize,
    bodies: usize,
}

impl ProbeHandle {
    /// Gives other answers from now on; see [`Probe::answering`].
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.lock().answers = answers.into_iter().collect();
    }

    /// Gets ready in other ways from now on; see [`Probe::readying`].
    pub fn ready(&self, script: impl IntoIterator<Item = Readiness>) {
        self.lock().readiness = script.into_iter().collect();
    }

    /// How often it was called.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.lock().calls.len()
    }

    /// The time of each call, from `start`.
    #[must_use]
    pub fn called_at(&self, start: Instant) -> Vec<Duration> {
        self.lock().calls.iter().map(|at| at.saturating_duration_since(start)).collect()
    }

    /// The most futures that were alive at once.
    #[must_use]
    pub fn most_live(&self) -> usize {
        self.lock().most_live
    }

    /// What is held now: reservations, futures and open bodies.
    #[must_use]
    pub fn held(&self) -> (usize, usize, usize) {
        let figures = self.lock();
        (figures.reserved, figures.live, figures.bodies)
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One more of something, until it is dropped.
struct Held {
    handle: ProbeHandle,
    count: fn(&mut Figures) -> &mut usize,
}

impl Held {
    fn new(handle: &ProbeHandle, count: fn(&mut Figures) -> &mut usize) -> Self {
        *count(&mut handle.lock()) += 1;
        Self { handle: handle.clone(), count }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *(self.count)(&mut self.handle.lock()) -= 1;
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
