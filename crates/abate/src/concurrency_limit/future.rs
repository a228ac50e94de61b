//! The future of a call that waits for its turn.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use http::{Request, Response};
use pin_project::pin_project;
use tower_service::Service;

use super::Hold;
use crate::body::{Answer, Carry, Slot, Wrap, poll_answer};
use crate::context::Scope;
use crate::error::{Error, ErrorKind};
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
    Waiting(Box<Waiting<S, R>>),
    Running(#[pin] S::Future),
    Refused(ErrorKind),
}

struct Waiting<S, R> {
    service: S,
    request: Option<R>,
    turn: Pin<Box<dyn Future<Output = Option<Permit>> + Send>>,
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
        Self { state: State::Waiting(Box::new(waiting)), permit: None, hold, carry: PhantomData }
    }
}

impl<S, R> Waiting<S, R> {
    /// The permit, or the kind of the refusal.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, ErrorKind>> {
        if let Poll::Ready(Some(permit)) = self.turn.as_mut().poll(cx) {
            return Poll::Ready(Ok(permit));
        }
        self.timer.poll(cx).map(|()| Err(self.kind))
    }
}

fn refusal(kind: ErrorKind) -> Error {
    let error = Error::new(kind);
    observe::refused(&error);
    error
}

impl<S, B, M> Answer for ResponseFuture<S, Request<B>, M>
where
    S: Service<Request<B>>,
    M: Carry<S::Future>,
{
    type Body = M::Body;

    #[inline(always)]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<M::Body>) {
        let mut this = self.project();
        let mut left = None;
        if let StateProj::Waiting(waiting) = this.state.as_mut().project() {
            match waiting.poll_turn(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(permit)) => *this.permit = Some(permit),
                Poll::Ready(Err(kind)) => {
                    // Leaves the queue, also if this future is kept for a while.
                    this.state.set(State::Refused(kind));
                    *slot = Poll::Ready(Err(refusal(kind)));
                    return;
                }
            }
            if let Some(request) = waiting.request.take() {
                let scope = Scope::poll();
                left = Some(scope.now());
                scope.set_sent(left);
                let running = waiting.service.call(request);
                this.state.set(State::Running(running));
            }
        }
        match this.state.project() {
            StateProj::Running(inner) => M::poll_into(inner, cx, slot),
            StateProj::Refused(kind) => *slot = Poll::Ready(Err(refusal(*kind))),
            StateProj::Waiting(_) => {}
        }
        if left.is_some() {
            // Once more: a call that the service below made of its own may have cleared it.
            Scope::poll().set_sent(left);
        }
        if let Poll::Ready(answer) = slot
            && let Some(permit) = this.permit.take()
            && *this.hold == Hold::Body
            && let Ok(response) = answer
            && let Some(held) = M::held(response.body_mut())
        {
            held.keep_permit(permit);
        }
    }
}

impl<S, B, M> Future for ResponseFuture<S, Request<B>, M>
where
    S: Service<Request<B>>,
    M: Carry<S::Future>,
{
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
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
