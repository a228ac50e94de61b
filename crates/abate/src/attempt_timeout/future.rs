//! The future of an attempt that may not take too long.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use http::Response;
use pin_project::pin_project;

use super::terms::Terms;
use crate::body::{Answer, Carry, Relay, Slot, Wrap, poll_answer};
use crate::context::Scope;
use crate::error::{Error, ErrorKind};
use crate::observe;
use crate::timer::Timer;

/// The future of [`AttemptTimeout`](super::AttemptTimeout).
///
/// # Cancel safety
///
/// Dropping it drops the attempt.
#[pin_project]
#[derive(Debug)]
pub struct ResponseFuture<F> {
    /// `None` once its time was up.
    #[pin]
    inner: Option<F>,
    /// Until it runs, its end is the deadline of the call.
    timer: Timer,
    terms: Terms,
    /// What it is when it ends.
    kind: ErrorKind,
}

impl<F> ResponseFuture<F> {
    #[inline]
    pub(super) const fn new(inner: F, terms: Terms, deadline: Deadline) -> Self {
        let timer = Timer::new(deadline);
        Self { inner: Some(inner), timer, terms, kind: ErrorKind::Deadline }
    }
}

impl<F> Answer for ResponseFuture<F>
where
    Wrap: Carry<F>,
{
    type Body = <Wrap as Relay<F>>::Body;

    #[inline(always)]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<Self::Body>) {
        let mut this = self.project();
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            Wrap::poll_into(inner, cx, slot);
            if let Poll::Ready(answer) = slot {
                if this.terms.covers_body
                    && let Ok(response) = answer
                    && let Some(held) = Wrap::held(response.body_mut())
                {
                    begin(this.timer, this.kind, *this.terms);
                    held.keep_until(this.timer.end(), *this.kind);
                }
                return;
            }
            begin(this.timer, this.kind, *this.terms);
            if this.timer.poll(cx).is_pending() {
                return;
            }
        }
        // The attempt ends here and now, also if this future is kept for a while.
        this.inner.set(None);
        *slot = Poll::Ready(Err(over(*this.kind)));
    }
}

impl<F> Future for ResponseFuture<F>
where
    Wrap: Carry<F>,
{
    type Output = Result<Response<<Wrap as Relay<F>>::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
    }
}

/// Begins an attempt when it is first pending, or when it is answered at once.
fn begin(timer: &mut Timer, kind: &mut ErrorKind, terms: Terms) {
    if !timer.is_running() {
        let (end, why) = terms.end(Scope::poll().now(), timer.end());
        timer.reset(end);
        *kind = why;
    }
}

#[cold]
fn over(kind: ErrorKind) -> Error {
    let error = Error::new(kind);
    observe::ended(&error);
    error
}
