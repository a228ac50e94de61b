//! The future of a call that a breaker watches.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use abate_core::breaker::Permit;
use abate_core::outcome::{Fault, Outcome};
use http::Response;
use pin_project::{pin_project, pinned_drop};

use crate::body::{Answer, Carry, Slot, Wrap, poll_answer};
use crate::context::Scope;
use crate::error::Error;
use crate::{clock, observe};

/// The future of [`CircuitBreaker`](super::CircuitBreaker).
///
/// # Cancel safety
///
/// Dropping it gives back a probe. If the call had been under way for half the attempt timeout, it
/// is recorded as a failure; else nothing is.
#[pin_project(PinnedDrop)]
pub struct ResponseFuture<F, M = Wrap> {
    #[pin]
    state: State<F>,
    watch: Option<Watch>,
    carry: PhantomData<fn() -> M>,
}

#[pin_project(project = StateProj)]
enum State<F> {
    Admitted(#[pin] F),
    Refused(Option<Error>),
}

/// What is needed to judge the call.
struct Watch {
    permit: Permit,
    /// When it was handed on; unknown while a layer below holds it back.
    sent: Option<Instant>,
}

impl<F, M> ResponseFuture<F, M> {
    #[inline]
    pub(super) const fn admitted(inner: F, permit: Permit, sent: Option<Instant>) -> Self {
        let watch = Some(Watch { permit, sent });
        Self { state: State::Admitted(inner), watch, carry: PhantomData }
    }

    pub(super) const fn refused(error: Error) -> Self {
        Self { state: State::Refused(Some(error)), watch: None, carry: PhantomData }
    }
}

impl Watch {
    #[inline(always)]
    fn answered<F, M: Carry<F>>(self, response: &mut Response<M::Body>, now: Instant) {
        let health = self.permit.health(&Outcome::of(response));
        let sent = self.sent.unwrap_or(now);
        observe::transition(self.permit.record_with(health, sent, now, |tail| {
            if let Some(held) = M::held(response.body_mut()) {
                held.keep_tail(tail);
            }
        }));
    }

    #[cold]
    fn failed(self, fault: Fault, now: Instant) {
        if fault == Fault::Cancelled {
            return self.cancelled(now);
        }
        let health = self.permit.health(&Outcome::Fault(fault));
        let (_, transition) = self.permit.record(health, self.sent.unwrap_or(now), now);
        observe::transition(transition);
    }

    fn cancelled(self, now: Instant) {
        // What was never sent says nothing, however long it waited: dropping the permit says so.
        if let Some(sent) = self.sent {
            observe::transition(self.permit.cancelled(sent, now));
        }
    }
}

impl<F, M: Carry<F>> Answer for ResponseFuture<F, M> {
    type Body = M::Body;

    #[inline(always)]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<M::Body>) {
        let this = self.project();
        let inner = match this.state.project() {
            StateProj::Admitted(inner) => inner,
            StateProj::Refused(error) => {
                *slot = error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                return;
            }
        };
        let scope = Scope::poll();
        let unsent = this.watch.as_ref().is_some_and(|watch| watch.sent.is_none());
        if unsent {
            scope.set_sent(None);
        }
        M::poll_into(inner, cx, slot);
        if unsent && let Some(watch) = this.watch.as_mut() {
            watch.sent = scope.sent();
        }
        if let Poll::Ready(answer) = slot
            && let Some(watch) = this.watch.take()
        {
            match answer {
                Ok(response) => watch.answered::<F, M>(response, scope.now()),
                Err(error) => watch.failed(error.fault(), scope.now()),
            }
        }
    }
}

impl<F, M: Carry<F>> Future for ResponseFuture<F, M> {
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
    }
}

#[pinned_drop]
impl<F, M> PinnedDrop for ResponseFuture<F, M> {
    fn drop(self: Pin<&mut Self>) {
        let watch = self.project().watch;
        if watch.is_some() {
            cancel(watch);
        }
    }
}

#[cold]
fn cancel(watch: &mut Option<Watch>) {
    if let Some(watch) = watch.take() {
        watch.cancelled(clock::now());
    }
}

impl<F, M> fmt::Debug for ResponseFuture<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Admitted(_) => "ResponseFuture(admitted)",
            State::Refused(_) => "ResponseFuture(refused)",
        })
    }
}
