use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use abate_core::budget::{Denied, Grant};
use abate_core::classify::{Statuses, Transient};
use http::{HeaderName, Request, Response};
use tower_service::Service;

use super::future::{Account, ResponseFuture};
use crate::budget::BudgetHandle;
use crate::context::{Attempt, Scope};
use crate::delayed::Delayed;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;

/// After this many failures without a single mark it is told that nobody seems to mark repeats.
const FAILURES_WITHOUT_MARK: u32 = 20;

/// What a layer decides by.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) budget: BudgetHandle,
    pub(super) retry_on: Statuses,
    pub(super) header: Option<HeaderName>,
    /// Failures seen while no repeat was ever marked; past the limit once one was, or it was told.
    unmarked: AtomicU32,
}

impl Terms {
    pub(super) const fn new(
        budget: BudgetHandle,
        retry_on: Statuses,
        header: Option<HeaderName>,
    ) -> Self {
        Self { budget, retry_on, header, unmarked: AtomicU32::new(0) }
    }

    /// A first attempt failed: a retry above would repeat it now, and mark it.
    pub(super) fn note_failure(&self) {
        // Relaxed: a count that has an effect once.
        if self.unmarked.load(Relaxed) <= FAILURES_WITHOUT_MARK
            && self.unmarked.fetch_add(1, Relaxed) == FAILURES_WITHOUT_MARK
        {
            observe::unmarked();
        }
    }

    /// Which attempt a request is, if anything tells.
    fn attempt<B>(&self, request: &Request<B>) -> Option<Attempt> {
        let marked = request.extensions().get::<Attempt>().copied().or_else(Attempt::current);
        marked.or_else(|| {
            let value = request.headers().get(self.header.as_ref()?)?;
            value.to_str().ok()?.trim().parse().ok().map(Attempt::new)
        })
    }
}

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
        // Relaxed: a count that has an effect once; repeats are marked, so nothing is to be told.
        self.terms.unmarked.store(u32::MAX, Relaxed);
        let now = scope.now();
        let (grant, wait) = match self.pay(scope, &request) {
            Ok(paid) => paid,
            Err(denied) => {
                scope.set_sent(None);
                let error = Error::new(ErrorKind::RetryRefused(denied.into()));
                observe::refused(&error);
                return ResponseFuture::new(Delayed::refused(error), None);
            }
        };
        let terms = Arc::clone(&self.terms);
        if wait.is_zero() {
            scope.set_sent(Some(now));
            let call = self.inner.call(request);
            let account = Account::repeat(terms, grant, scope);
            return ResponseFuture::new(Delayed::running(call), Some(account));
        }
        scope.set_sent(None);
        let fresh = self.inner.clone();
        let ready = mem::replace(&mut self.inner, fresh);
        let account = Account::repeat(terms, grant, scope);
        ResponseFuture::new(Delayed::held(ready, request, now + wait), Some(account))
    }

    /// A token and a slot, and how long to wait for it. Why it is repeated, nobody says here.
    fn pay<B>(&self, scope: &Scope, request: &Request<B>) -> Result<(Grant, Duration), Denied> {
        let (now, budget) = (scope.now(), self.terms.budget.core());
        let left = scope.deadline(request).remaining(now);
        let mut grant = budget.grant(now, Duration::ZERO, left, Transient::Server)?;
        let wait = grant.slot(now, left)?;
        Ok((grant, wait))
    }
}
