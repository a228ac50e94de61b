//! One call, carried: the session that decides, and the hands that do.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use abate_core::budget::Grant;
use abate_core::deadline::Deadline;
use abate_core::outcome::{Fault, Outcome};
use abate_core::session::{Decision, Retry, Session, Stop, StopReason, Traits};
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::kept::Kept;
use super::pause::{Pause, Prepared, Refusal};
use super::shared::Shared;
use crate::body::ReplayBody;
use crate::budget::BudgetHandle;
use crate::context::{self, Attempt, Scope};
use crate::error::{BoxError, Error, ErrorKind};
use crate::report::{Report, TriedResult};
use crate::{clock, observe};

pub(super) struct Call<S> {
    shared: Arc<Shared<S>>,
    session: Session,
    traits: Traits,
    kept: Option<Kept>,
    /// What the layers below are to see.
    deadline: Deadline,
    target: u64,
    /// The attempt that this call is for a retry above, which does the retrying then.
    above: Option<Attempt>,
    /// Whether the present attempt has left our own layers.
    sent: bool,
    /// What pays for the present attempt, until it is sent.
    grant: Option<Grant>,
    past: Option<Box<Past>>,
}

/// What there is to tell of a call whose first attempt failed.
struct Past {
    report: Report,
    /// When the pause before the present attempt began, and how long it was.
    paused: Instant,
    waited: Duration,
}

impl<S> Call<S> {
    pub(super) const fn new(
        shared: Arc<Shared<S>>,
        session: Session,
        traits: Traits,
        kept: Option<Kept>,
        deadline: Deadline,
        target: u64,
        above: Option<Attempt>,
    ) -> Self {
        let (sent, grant, past) = (false, None, None);
        Self { shared, session, traits, kept, deadline, target, above, sent, grant, past }
    }

    /// Sends an attempt through a service that is ready.
    #[inline]
    pub(super) fn send<B>(
        &mut self,
        scope: &Scope,
        service: &mut S,
        request: Request<ReplayBody<B>>,
        grant: Option<Grant>,
    ) -> S::Future
    where
        S: Service<Request<ReplayBody<B>>>,
        B: Body,
    {
        if let Some(past) = &mut self.past {
            past.waited = scope.now().saturating_duration_since(past.paused);
        }
        self.grant = grant;
        let _deadline = scope.set_deadline(self.deadline);
        let _attempt = scope.set_attempt(self.attempt());
        scope.set_sent(Some(scope.now()));
        let future = service.call(request);
        self.note_sent(scope.sent());
        future
    }

    #[inline]
    pub(super) fn poll_attempt<F: Future>(
        &mut self,
        scope: &Scope,
        attempt: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let _deadline = scope.set_deadline(self.deadline);
        let _attempt = scope.set_attempt(self.attempt());
        if self.sent {
            return attempt.poll(cx);
        }
        scope.set_sent(None);
        let result = attempt.poll(cx);
        self.note_sent(scope.sent());
        result
    }

    pub(super) fn poll_pause<B, ResBody>(
        &mut self,
        scope: &Scope,
        pause: Pin<&mut Pause<S, B, ResBody>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Prepared<S, B>, Refusal>>
    where
        S: Service<Request<ReplayBody<B>>> + Clone,
        S::Error: Into<BoxError> + 'static,
        B: Body,
        ResBody: Body,
    {
        let _deadline = scope.set_deadline(self.deadline);
        let _attempt = scope.set_attempt(self.attempt());
        pause.poll(cx, scope.now(), &self.session, || self.shared.fresh())
    }

    #[inline]
    pub(super) fn decide(
        &mut self,
        scope: &Scope,
        outcome: &Outcome<'_>,
        wall: impl FnOnce() -> SystemTime,
    ) -> Decision {
        let ours = matches!(outcome, Outcome::Fault(Fault::Local | Fault::Cancelled));
        match self.grant.take() {
            // Refused on its way: the token goes back.
            Some(grant) if ours => drop(grant),
            Some(grant) => grant.sent(),
            None => {}
        }
        let bounds = self.shared.terms.bounds(self.traits.nested);
        self.session.decide(bounds, self.traits, outcome, scope.now(), wall)
    }

    /// The end of a call that succeeded.
    #[inline]
    pub(super) fn succeed<B>(
        &mut self,
        scope: &Scope,
        result: Result<Response<B>, Error>,
    ) -> Result<Response<B>, Error> {
        if self.past.is_none() { result } else { self.end(scope, result, None) }
    }

    /// The end of a call that did not succeed, and will not be tried again.
    pub(super) fn fail<B>(
        &mut self,
        scope: &Scope,
        result: Result<Response<B>, Error>,
        stop: Stop,
    ) -> Result<Response<B>, Error> {
        observe::malformed(stop.hint);
        observe::stopped(self.session.attempts(), stop.reason);
        self.end(scope, result, Some(stop))
    }

    /// The end of a call whose retry was not sent, after the wait for it.
    pub(super) fn end_unsent(&mut self, scope: &Scope, refusal: Refusal) -> Error {
        let (error, reason) = match refusal {
            Refusal::Stopped(reason) => (Error::new(ErrorKind::RetryRefused(reason)), reason),
            Refusal::NotReady(error) => (error, StopReason::Refused),
        };
        observe::stopped(self.session.attempts(), reason);
        let mut report = self.past.take().map(|past| past.report).unwrap_or_default();
        report.end(self.elapsed(scope), Some(reason), None);
        error.with_report(report)
    }

    /// Notes that an attempt failed and that another will be made.
    pub(super) fn note_retry(&mut self, scope: &Scope, tried: TriedResult, retry: &Retry) {
        observe::malformed(retry.hint);
        observe::retry(self.session.attempts(), tried, retry.why, retry.after, retry.source);
        self.push(tried);
        if let Some(past) = &mut self.past {
            past.paused = scope.now();
        }
    }

    /// The request once more, marked as a repeat.
    pub(super) fn repeat<B>(&self) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut request = self.kept.as_ref()?.request()?;
        self.mark(&mut request, true);
        Some(request)
    }

    /// Tells those below which attempt it is, as far as they are to know.
    #[inline]
    pub(super) fn mark<B: Body>(&self, request: &mut Request<ReplayBody<B>>, repeat: bool) {
        let terms = &self.shared.terms;
        if self.above.is_some() {
            // Told by the retry above, in its own words.
            return;
        }
        if repeat || terms.spawned {
            request.extensions_mut().insert(self.attempt());
        }
        if terms.spawned && self.deadline != Deadline::NEVER {
            request.extensions_mut().insert(self.deadline);
        }
        if let Some(name) = &terms.header {
            let number = HeaderValue::from(self.attempt().number());
            request.headers_mut().insert(name.clone(), number);
        }
    }

    fn end<B>(
        &mut self,
        scope: &Scope,
        mut result: Result<Response<B>, Error>,
        stop: Option<Stop>,
    ) -> Result<Response<B>, Error> {
        match &result {
            Ok(response) => self.push(TriedResult::Status(response.status())),
            Err(error) => match error.fault() {
                // No attempts: refused by our own layers, or no longer wanted.
                Fault::Local | Fault::Cancelled => {}
                fault => self.push(TriedResult::Fault(fault)),
            },
        }
        let mut report = self.past.take().map(|past| past.report).unwrap_or_default();
        let (reason, retry_at) =
            (stop.map(|stop| stop.reason), stop.and_then(|stop| stop.retry_at));
        report.end(self.elapsed(scope), reason, retry_at);
        match &mut result {
            Ok(response) => {
                response.extensions_mut().insert(report);
                result
            }
            Err(_) => result.map_err(|error| error.with_report(report)),
        }
    }

    fn push(&mut self, tried: TriedResult) {
        let started = self.session.started();
        let past = self.past.get_or_insert_with(|| {
            let report = Report::default();
            Box::new(Past { report, paused: started, waited: Duration::ZERO })
        });
        past.report.push(tried, past.waited);
    }

    fn note_sent(&mut self, sent: Option<Instant>) {
        self.sent = sent.is_some();
        if let Some(at) = sent {
            self.session.sent(self.shared.terms.bounds(self.traits.nested).budget, at);
            if let Some(grant) = self.grant.take() {
                grant.sent();
            }
        }
    }

    fn attempt(&self) -> Attempt {
        if let Some(above) = self.above {
            return above;
        }
        let budget = self.shared.terms.budget.as_ref().map(BudgetHandle::id);
        Attempt::of(self.session.attempts().saturating_add(1), self.target, budget)
    }

    fn elapsed(&self, scope: &Scope) -> Duration {
        scope.now().saturating_duration_since(self.session.started())
    }
}

impl<S> Drop for Call<S> {
    fn drop(&mut self) {
        if let Some(past) = self.past.take() {
            let started = self.session.started();
            context::leave_report(|| {
                let mut report = past.report;
                let elapsed = clock::now().saturating_duration_since(started);
                report.end(elapsed, Some(StopReason::Deadline), None);
                report
            });
        }
    }
}

impl<S> fmt::Debug for Call<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("session", &self.session)
            .field("traits", &self.traits)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
