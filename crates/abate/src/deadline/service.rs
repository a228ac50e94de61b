use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};
use std::time::Duration;

use abate_core::deadline::Deadline;
use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use crate::body::{Carry, Wrap};
use crate::context::Scope;
use crate::error::{BoxError, Error};

/// The service of [`DeadlineLayer`](super::DeadlineLayer).
pub struct Deadlined<S, M = Wrap> {
    inner: S,
    timeout: Duration,
    covers_body: bool,
    carry: PhantomData<fn() -> M>,
}

impl<S, M> Deadlined<S, M> {
    pub(super) const fn new(inner: S, timeout: Duration, covers_body: bool) -> Self {
        Self { inner, timeout, covers_body, carry: PhantomData }
    }
}

impl<S, B, M> Service<Request<B>> for Deadlined<S, M>
where
    S: Service<Request<B>> + Clone,
    S::Error: Into<BoxError> + 'static,
    M: Carry<S::Future>,
{
    type Response = Response<M::Body>;
    type Error = Error;
    type Future = ResponseFuture<S::Future, M>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let now = scope.now();
        let end = Deadline::after(now, self.timeout)
            .earlier(scope.earliest_deadline(request.extensions()));
        if end.has_passed(now) {
            scope.set_sent(None);
            // Gives back what was reserved for a call that is not made.
            self.inner = self.inner.clone();
            return ResponseFuture::passed(end);
        }
        let _deadline = scope.set_deadline(end);
        ResponseFuture::new(self.inner.call(request), end, self.covers_body)
    }
}

impl<S: Clone, M> Clone for Deadlined<S, M> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.timeout, self.covers_body)
    }
}

impl<S: fmt::Debug, M> fmt::Debug for Deadlined<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadlined")
            .field("inner", &self.inner)
            .field("timeout", &self.timeout)
            .finish()
    }
}
