use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use abate_core::budget::{Denied, Grant};
use abate_core::classify::Transient;
use http::{Request, Response};
use tower_service::Service;

use super::future::{Account, ResponseFuture, refused};
use super::terms::Terms;
use crate::context::{self, Scope};
use crate::delayed::Delayed;
use crate::error::{BoxError, Error};

/// The service of [`RetryBudgetLayer`](super::RetryBudgetLayer).
#[derive(Debug, Clone)]
pub struct RetryBudget<S> {
    inner: S,
    terms: Arc<Terms>,
}

impl<S> RetryBudget<S> {
    pub(super) const fn new(inner: S, terms: Arc<Terms>) -> Self {
        Self { inner, terms }
    }
}

impl<S, B, ResBody> Service<Request<B>> for RetryBudget<S>
where
    S: Service<Request<B>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    type Response = Response<ResBody>;
    type Error = Error;
    type Future = ResponseFuture<S, Request<B>>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let attempt = self.terms.attempt(&request);
        if attempt.is_some() {
            self.terms.note_mark();
        }
        if attempt.is_some_and(|attempt| attempt.is_charged_to(&self.terms.budget)) {
            // Counted, earned and paid for by the retry above.
            return ResponseFuture::new(Delayed::running(self.inner.call(request)), None);
        }
        if attempt.is_some_and(|attempt| attempt.number() > 1) {
            return self.repeat(&scope, request);
        }
        scope.set_sent(Some(scope.now()));
        let call = self.inner.call(request);
        let account = Account::first(Arc::clone(&self.terms), &scope);
        ResponseFuture::new(Delayed::running(call), Some(account))
    }
}

impl<S> RetryBudget<S> {
    #[cold]
    fn repeat<B, ResBody>(
        &mut self,
        scope: &Scope,
        request: Request<B>,
    ) -> ResponseFuture<S, Request<B>>
    where
        S: Service<Request<B>, Response = Response<ResBody>> + Clone,
    {
        let now = scope.now();
        let deadline = context::deadline(&request);
        let (grant, wait) = match self.pay(now, deadline.remaining(now)) {
            Ok(paid) => paid,
            Err(denied) => {
                scope.set_sent(None);
                self.release();
                return ResponseFuture::new(Delayed::refused(refused(denied)), None);
            }
        };
        let terms = Arc::clone(&self.terms);
        if wait.is_zero() {
            scope.set_sent(Some(now));
            let call = self.inner.call(request);
            let account = Account::repeat(terms, grant, deadline, scope);
            return ResponseFuture::new(Delayed::running(call), Some(account));
        }
        scope.set_sent(None);
        let account = Account::repeat(terms, grant, deadline, scope);
        self.release();
        let held = Delayed::held(self.inner.clone(), request, now + wait);
        ResponseFuture::new(held, Some(account))
    }

    /// Gives back what was reserved for a call that is not made now.
    fn release(&mut self)
    where
        S: Clone,
    {
        self.inner = self.inner.clone();
    }

    /// A token and a slot, and how long to wait for it. Why it is repeated, nobody says here.
    fn pay(&self, now: Instant, left: Duration) -> Result<(Grant, Duration), Denied> {
        let budget = self.terms.budget.core();
        let mut grant = budget.grant(now, Duration::ZERO, left, Transient::Server)?;
        let wait = grant.slot(now, left)?;
        Ok((grant, wait))
    }
}
