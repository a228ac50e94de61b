//! The future of a call that is on a budget.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use abate_core::budget::{Denied, Grant};
use abate_core::classify::Verdict;
use abate_core::deadline::Deadline;
use abate_core::outcome::Outcome;
use http::Response;
use pin_project::pin_project;
use tower_service::Service;

use super::terms::Terms;
use crate::context::Scope;
use crate::delayed::Delayed;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;

/// The future of [`RetryBudget`](super::RetryBudget).
///
/// # Cancel safety
///
/// Dropping it drops the call. A repeat that was not sent gives back its token and its slot.
#[pin_project]
pub struct ResponseFuture<S, R>
where
    S: Service<R>,
{
    #[pin]
    call: Delayed<S, R>,
    /// `None` for a call that is accounted for elsewhere, or was refused.
    account: Option<Account>,
}

/// What a call owes, and may earn.
#[derive(Debug)]
pub(super) struct Account {
    terms: Arc<Terms>,
    repeat: bool,
    /// What pays for a repeat, until it is sent. Boxed: most calls are none.
    paid: Option<Box<Paid>>,
    sent: bool,
}

#[derive(Debug)]
struct Paid {
    grant: Grant,
    deadline: Deadline,
}

impl Account {
    /// Of a first attempt that has just been handed on.
    pub(super) fn first(terms: Arc<Terms>, scope: &Scope) -> Self {
        let mut account = Self { terms, repeat: false, paid: None, sent: false };
        account.note_sent(scope);
        account
    }

    /// Of a repeat that was handed on, or is held.
    pub(super) fn repeat(
        terms: Arc<Terms>,
        grant: Grant,
        deadline: Deadline,
        scope: &Scope,
    ) -> Self {
        let paid = Some(Box::new(Paid { grant, deadline }));
        let mut account = Self { terms, repeat: true, paid, sent: false };
        account.note_sent(scope);
        account
    }

    /// How much longer a repeat is held.
    fn slot(&mut self, now: Instant) -> Result<Duration, Error> {
        let Some(paid) = &mut self.paid else { return Ok(Duration::ZERO) };
        paid.grant.slot(now, paid.deadline.remaining(now)).map_err(refused)
    }

    fn note_sent(&mut self, scope: &Scope) {
        if let (false, Some(at)) = (self.sent, scope.sent()) {
            self.sent = true;
            if !self.repeat {
                self.terms.budget.core().count_call(at);
            }
            if let Some(paid) = self.paid.take() {
                paid.grant.sent();
            }
        }
    }

    fn settle(mut self, outcome: &Outcome<'_>, scope: &Scope) {
        let verdict = self.terms.classifier.verdict(outcome);
        if matches!(verdict, Verdict::Ours(_)) {
            // Never got beyond our own layers: nothing is counted, and the token goes back.
            return;
        }
        scope.set_sent(Some(scope.now()));
        self.note_sent(scope);
        if verdict.earns() {
            self.terms.budget.core().earn();
        } else if !self.repeat {
            self.terms.note_failure();
        }
    }
}

pub(super) fn refused(denied: Denied) -> Error {
    let error = Error::new(ErrorKind::RetryRefused(denied.into()));
    observe::refused(&error);
    error
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
{
    pub(super) const fn new(call: Delayed<S, R>, account: Option<Account>) -> Self {
        Self { call, account }
    }
}

impl<S, R, B> Future for ResponseFuture<S, R>
where
    S: Service<R, Response = Response<B>>,
    S::Error: Into<BoxError> + 'static,
{
    type Output = Result<Response<B>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let scope = Scope::poll();
        let unsent = this.account.as_ref().is_some_and(|account| !account.sent);
        if unsent {
            scope.set_sent(None);
        }
        let account = &mut *this.account;
        let result = this.call.as_mut().poll_asking(cx, |now| match account {
            Some(account) => account.slot(now),
            None => Ok(Duration::ZERO),
        });
        if let (true, Some(account)) = (unsent, this.account.as_mut()) {
            account.note_sent(&scope);
        }
        let Poll::Ready(result) = result else { return Poll::Pending };
        // What did not get as far as being called is not owed for.
        if let Some(account) = this.account.take().filter(|_| !this.call.is_held()) {
            let outcome = match &result {
                Ok(response) => Outcome::of(response),
                Err(error) => Outcome::Fault(error.fault()),
            };
            account.settle(&outcome, &scope);
        }
        Poll::Ready(result)
    }
}

impl<S, R> fmt::Debug for ResponseFuture<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("call", &self.call)
            .field("account", &self.account)
            .finish()
    }
}
