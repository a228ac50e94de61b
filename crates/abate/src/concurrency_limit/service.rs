use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::task::{Context, Poll};
use std::time::Duration;

use abate_core::deadline::Deadline;
use abate_core::striped::Stripe;
use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use super::{ConcurrencyLimitHandle, Hold};
use crate::body::{Carry, Wrap};
use crate::context::{self, Scope};
use crate::error::{BoxError, Error, ErrorKind};
use crate::permits::Permits;

/// What a layer is told beside its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) wait: Duration,
    pub(super) hold: Hold,
}

/// The service of [`ConcurrencyLimitLayer`](super::ConcurrencyLimitLayer).
pub struct ConcurrencyLimit<S, M = Wrap> {
    inner: S,
    handle: ConcurrencyLimitHandle,
    terms: Terms,
    carry: PhantomData<fn() -> M>,
}

impl<S, M> ConcurrencyLimit<S, M> {
    pub(super) const fn new(inner: S, handle: ConcurrencyLimitHandle, terms: Terms) -> Self {
        Self { inner, handle, terms, carry: PhantomData }
    }
}

impl<S, B, M> Service<Request<B>> for ConcurrencyLimit<S, M>
where
    S: Service<Request<B>> + Clone,
    S::Error: Into<BoxError> + 'static,
    M: Carry<S::Future>,
{
    type Response = Response<M::Body>;
    type Error = Error;
    type Future = ResponseFuture<S, Request<B>, M>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline(always)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(permits) = self.handle.permits() else {
            return ResponseFuture::running(self.inner.call(request), None, Hold::Head);
        };
        match Permits::try_acquire(permits) {
            Some(permit) => {
                ResponseFuture::running(self.inner.call(request), Some(permit), self.terms.hold)
            }
            None => {
                let permits = permits.hold();
                self.wait(permits, request)
            }
        }
    }
}

impl<S, M> ConcurrencyLimit<S, M> {
    /// Queues a call, if there is time for it.
    #[cold]
    fn wait<B>(
        &mut self,
        permits: Stripe<Permits>,
        request: Request<B>,
    ) -> ResponseFuture<S, Request<B>, M>
    where
        S: Service<Request<B>> + Clone,
    {
        let scope = Scope::call();
        // Whoever is above learns that it was not sent yet.
        scope.set_sent(None);
        let now = scope.now();
        let own = Deadline::after(now, self.terms.wait);
        let end = own.earlier(context::deadline(&request));
        let kind = if end == own { ErrorKind::LimitReached } else { ErrorKind::Deadline };
        if end.remaining(now).is_zero() {
            // Gives back what was reserved for a call that is not made.
            self.inner = self.inner.clone();
            return ResponseFuture::refused(kind);
        }
        // The service that was readied is the one that will be called.
        let fresh = self.inner.clone();
        let ready = mem::replace(&mut self.inner, fresh);
        let turn = Permits::acquire(permits);
        ResponseFuture::waiting(ready, request, turn, self.terms.hold, end, kind)
    }
}

impl<S: Clone, M> Clone for ConcurrencyLimit<S, M> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.handle.clone(), self.terms)
    }
}

impl<S: fmt::Debug, M> fmt::Debug for ConcurrencyLimit<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("inner", &self.inner)
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
