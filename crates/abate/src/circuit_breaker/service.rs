use std::fmt;
use std::marker::PhantomData;
use std::task::{Context, Poll};
use std::time::Instant;

use abate_core::breaker::{Admitted, Refused};
use http::{Request, Response};
use tower_service::Service;

use super::breakers::Breakers;
use super::future::ResponseFuture;
use crate::body::{Carry, Wrap};
use crate::context::Scope;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;

/// The service of [`CircuitBreakerLayer`](super::CircuitBreakerLayer).
pub struct CircuitBreaker<S, M = Wrap> {
    inner: S,
    breakers: Breakers,
    carry: PhantomData<fn() -> M>,
}

impl<S, M> CircuitBreaker<S, M> {
    pub(super) const fn new(inner: S, breakers: Breakers) -> Self {
        Self { inner, breakers, carry: PhantomData }
    }
}

impl<S, B, M> Service<Request<B>> for CircuitBreaker<S, M>
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
        // Each way has a body of its own: a request that is looked at is moved once more.
        match &self.breakers {
            Breakers::One(breaker) => {
                let scope = Scope::call();
                let now = scope.now();
                match breaker.admit(now) {
                    Ok(admitted) => self.send(&scope, now, admitted, request),
                    Err(refused) => self.refuse(&scope, refused),
                }
            }
            Breakers::Each(_) => self.call_keyed(request),
        }
    }
}

impl<S, M> CircuitBreaker<S, M> {
    fn call_keyed<B>(&mut self, request: Request<B>) -> ResponseFuture<S::Future, M>
    where
        S: Service<Request<B>> + Clone,
    {
        let scope = Scope::call();
        let now = scope.now();
        match self.breakers.admit(&request, now) {
            Ok(admitted) => self.send(&scope, now, admitted, request),
            Err(refused) => self.refuse(&scope, refused),
        }
    }

    #[inline(always)]
    fn send<B>(
        &mut self,
        scope: &Scope,
        now: Instant,
        admitted: Admitted,
        request: Request<B>,
    ) -> ResponseFuture<S::Future, M>
    where
        S: Service<Request<B>>,
    {
        observe::transition(admitted.transition);
        scope.set_sent(Some(now));
        let inner = self.inner.call(request);
        ResponseFuture::admitted(inner, admitted.permit, scope.sent())
    }

    #[cold]
    fn refuse<F>(&mut self, scope: &Scope, refused: Refused) -> ResponseFuture<F, M>
    where
        S: Clone,
    {
        observe::transition(refused.transition);
        scope.set_sent(None);
        // Gives back what was reserved for a call that is not made.
        self.inner = self.inner.clone();
        let error = Error::new(ErrorKind::BreakerOpen).with_retry_at(refused.retry_at);
        observe::refused(&error);
        ResponseFuture::refused(error)
    }
}

impl<S: Clone, M> Clone for CircuitBreaker<S, M> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.breakers.clone())
    }
}

impl<S: fmt::Debug, M> fmt::Debug for CircuitBreaker<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker")
            .field("inner", &self.inner)
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}
