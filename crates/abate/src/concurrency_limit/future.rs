//! The future of a call that waits for its turn.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use abate_core::deadline::Deadline;
use http::{Request, Response};
use pin_project::pin_project;
use tower_service::Service;

use super::Hold;
use crate::body::{Carry, Held, Wrap};
use crate::context::Scope;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;
use crate::permits::Permit;
use crate::timer::Timer;

/// The future of [`ConcurrencyLimit`](super::ConcurrencyLimit).
///
/// # Cancel safety
///
/// Dropping it gives back the permit, or the place in the queue.
#[pin_project]
pub struct ResponseFuture<S, R, M = Wrap>
where
    S: Service<R>,
{
    #[pin]
    state: State<S, R>,
    permit: Option<Permit>,
    hold: Hold,
    carry: PhantomData<fn() -> M>,
}

#[pin_project(project = StateProj)]
enum State<S, R>
where
    S: Service<R>,
{
    /// Boxed: this path waits, and the path of a call that need not is to stay small.
    Waiting(Pin<Box<Waiting<S, R>>>),
    Running(#[pin] S::Future),
    Refused(ErrorKind),
}

#[pin_project]
struct Waiting<S, R> {
    service: S,
    request: Option<R>,
    turn: Pin<Box<dyn Future<Output = Option<Permit>> + Send>>,
    #[pin]
    timer: Timer,
    /// What it is when the wait is over.
    kind: ErrorKind,
}

impl<S, R, M> ResponseFuture<S, R, M>
where
    S: Service<R>,
{
    pub(super) const fn running(inner: S::Future, permit: Option<Permit>, hold: Hold) -> Self {
        Self { state: State::Running(inner), permit, hold, carry: PhantomData }
    }

    pub(super) const fn refused(kind: ErrorKind) -> Self {
        Self { state: State::Refused(kind), permit: None, hold: Hold::Head, carry: PhantomData }
    }

    pub(super) fn waiting(
        service: S,
        request: R,
        turn: impl Future<Output = Option<Permit>> + Send + 'static,
        hold: Hold,
        end: Deadline,
        kind: ErrorKind,
    ) -> Self {
        let waiting = Waiting {
            service,
            request: Some(request),
            turn: Box::pin(turn),
            timer: Timer::new(end),
            kind,
        };
        Self { state: State::Waiting(Box::pin(waiting)), permit: None, hold, carry: PhantomData }
    }
}

impl<S, R> Waiting<S, R> {
    /// The permit, or the kind of the refusal.
    fn poll_turn(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Permit, ErrorKind>> {
        let this = self.project();
        if let Poll::Ready(Some(permit)) = this.turn.as_mut().poll(cx) {
            return Poll::Ready(Ok(permit));
        }
        this.timer.poll(cx).map(|()| Err(*this.kind))
    }
}

fn refusal(kind: ErrorKind) -> Error {
    let error = Error::new(kind);
    observe::refused(&error);
    error
}

impl<S, B, ResBody, M> Future for ResponseFuture<S, Request<B>, M>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError> + 'static,
    M: Carry<ResBody>,
{
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut left = None;
        if let StateProj::Waiting(waiting) = this.state.as_mut().project() {
            match ready!(waiting.as_mut().poll_turn(cx)) {
                Ok(permit) => *this.permit = Some(permit),
                Err(kind) => {
                    // Leaves the queue, also if this future is kept for a while.
                    this.state.set(State::Refused(kind));
                    return Poll::Ready(Err(refusal(kind)));
                }
            }
            let waited = waiting.as_mut().project();
            if let Some(request) = waited.request.take() {
                let scope = Scope::poll();
                left = Some(scope.now());
                scope.set_sent(left);
                let running = waited.service.call(request);
                this.state.set(State::Running(running));
            }
        }
        let inner = match this.state.project() {
            StateProj::Running(inner) => inner,
            StateProj::Refused(kind) => return Poll::Ready(Err(refusal(*kind))),
            StateProj::Waiting(_) => return Poll::Pending,
        };
        let result = inner.poll(cx);
        if left.is_some() {
            // Once more: a call that the service below made of its own may have cleared it.
            Scope::poll().set_sent(left);
        }
        let result = ready!(result);
        let permit = this.permit.take().filter(|_| *this.hold == Hold::Body);
        Poll::Ready(match result {
            Ok(response) => Ok(M::carry(response, Held::permit(permit))),
            Err(error) => Err(Error::from_inner(error)),
        })
    }
}

impl<S, R, M> fmt::Debug for ResponseFuture<S, R, M>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Waiting(_) => "ResponseFuture(waiting for its turn)",
            State::Running(_) => "ResponseFuture(running)",
            State::Refused(_) => "ResponseFuture(refused)",
        })
    }
}
