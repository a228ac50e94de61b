//! The future of a call that a breaker watches.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use abate_core::breaker::{Permit, Tail};
use abate_core::classify::Classifier;
use abate_core::outcome::{Fault, Outcome};
use http::Response;
use pin_project::{pin_project, pinned_drop};

use crate::body::{Carry, Held, Wrap};
use crate::context::Scope;
use crate::error::{BoxError, Error};
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
    classifier: Classifier,
    /// When it was handed on; unknown while a layer below holds it back.
    sent: Option<Instant>,
}

impl<F, M> ResponseFuture<F, M> {
    pub(super) const fn admitted(
        inner: F,
        permit: Permit,
        classifier: Classifier,
        sent: Option<Instant>,
    ) -> Self {
        let watch = Some(Watch { permit, classifier, sent });
        Self { state: State::Admitted(inner), watch, carry: PhantomData }
    }

    pub(super) const fn refused(error: Error) -> Self {
        Self { state: State::Refused(Some(error)), watch: None, carry: PhantomData }
    }
}

impl Watch {
    fn answered<B>(self, response: &Response<B>, now: Instant) -> Option<Tail> {
        let health = self.classifier.health(&Outcome::of(response));
        let (tail, transition) = self.permit.record(health, self.sent.unwrap_or(now), now);
        observe::transition(transition);
        tail
    }

    fn failed(self, fault: Fault, now: Instant) {
        if fault == Fault::Cancelled {
            return self.cancelled(now);
        }
        let health = self.classifier.health(&Outcome::Fault(fault));
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

impl<F, B, E, M> Future for ResponseFuture<F, M>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError> + 'static,
    M: Carry<B>,
{
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inner = match this.state.project() {
            StateProj::Admitted(inner) => inner,
            StateProj::Refused(error) => {
                return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
            }
        };
        let scope = Scope::poll();
        let unsent = this.watch.as_ref().is_some_and(|watch| watch.sent.is_none());
        if unsent {
            scope.set_sent(None);
        }
        let result = inner.poll(cx);
        if let (true, Some(watch)) = (unsent, this.watch.as_mut()) {
            watch.sent = scope.sent();
        }
        let Poll::Ready(result) = result else { return Poll::Pending };
        let watch = this.watch.take();
        Poll::Ready(match result {
            Ok(response) => {
                let tail = watch.and_then(|watch| watch.answered(&response, scope.now()));
                Ok(M::carry(response, Held::tail(tail)))
            }
            Err(error) => {
                let error = Error::from_inner(error);
                if let Some(watch) = watch {
                    watch.failed(error.fault(), scope.now());
                }
                Err(error)
            }
        })
    }
}

#[pinned_drop]
impl<F, M> PinnedDrop for ResponseFuture<F, M> {
    fn drop(self: Pin<&mut Self>) {
        if let Some(watch) = self.project().watch.take() {
            watch.cancelled(clock::now());
        }
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
