//! One call, carried: the session that decides, and the hands that do.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use abate_core::budget::Grant;
use abate_core::deadline::Deadline;
use abate_core::outcome::{Fault, Outcome};
use abate_core::safety::Safety;
use abate_core::session::{Decision, Retry, Session, Stop, StopReason, Traits};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request};
use http_body::Body;
use tower_service::Service;

use super::kept::Kept;
use super::pause::{Pause, Prepared, Refusal};
use super::recall::wished_for;
use super::shared::{Shared, Terms};
use crate::body::{ReplayBody, Slot, Tape};
use crate::budget::BudgetHandle;
use crate::context::{self, Attempt, AttemptGuard, Scope};
use crate::error::{BoxError, Error, ErrorKind};
use crate::report::{Report, TriedResult};
use crate::{clock, observe};

/// The state of a call, but for what is pinned; it lives in a [pool](super::pool).
#[derive(Debug)]
pub(super) struct Call {
    session: Session,
    traits: Traits,
    kept: Kept,
    /// What the layers below are to see: deadline and attempt. Of a call that a retry above makes, the
    /// attempt is that one's.
    deadline: Deadline,
    attempt: Attempt,
    /// Whether it is made below the retry of another call.
    apart: bool,
    /// Whether the present attempt has left our own layers.
    sent: bool,
    /// What pays for the present attempt, until it is sent.
    grant: Option<Grant>,
    past: Option<Box<Past>>,
}

/// What there is to tell of a call whose first attempt failed.
#[derive(Debug)]
struct Past {
    report: Report,
    /// When the pause before the present attempt began, and how long it was.
    paused: Instant,
    waited: Duration,
}

impl Call {
    /// Begins a call.
    #[inline(always)]
    pub(super) fn begin(&mut self, terms: &Terms, deadline: Deadline, now: Instant, head: &Parts) {
        self.deadline = deadline;
        self.session = Session::new(&terms.policy, deadline, now);

        let target = self.kept.keep_uri(head);
        let around = Attempt::current();
        let marked = || head.extensions.get::<Attempt>().copied();
        let same = |attempt: &Attempt| attempt.has_target(target);
        let above = around.filter(same).or_else(|| marked().filter(same));
        // A call that a layer below another retry makes of its own (a token fetch): what becomes of
        // it is not the other's affair.
        self.apart = around.is_some() && above.is_none();
        self.attempt = above
            .unwrap_or_else(|| Attempt::of(1, target, terms.budget.as_ref().map(BudgetHandle::id)));
        self.traits = Traits {
            safety: terms.policy.safety().judge(head),
            replayable: false,
            nested: above.is_some(),
        };
        if above.is_some() {
            terms.stand_down();
        }
    }

    /// Whether another attempt may come to be made, for all that is known before the first.
    #[inline]
    pub(super) fn may_repeat(&self, terms: &Terms) -> bool {
        terms.policy.attempts() > 1 && !self.traits.nested
    }

    /// Keeps what a repeat needs of a request, if it can be repeated.
    #[inline]
    pub(super) fn keep<B>(&mut self, head: &Parts, body: &ReplayBody<B>, tape: Option<&Tape<B>>)
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.traits.replayable = self.kept.keep(head, body, tape);
    }

    /// Notes what has become of a stream.
    pub(super) fn note_tape<B>(&mut self, tape: &Tape<B>)
    where
        B: Body<Data = Bytes> + Unpin,
    {
        self.traits.replayable = tape.is_recorded();
    }

    /// A call that has not begun.
    pub(super) fn new(terms: &Terms, deadline: Deadline, now: Instant) -> Self {
        Self {
            session: Session::new(&terms.policy, deadline, now),
            traits: Traits { safety: Safety::IfRefused, replayable: false, nested: false },
            kept: Kept::new(),
            deadline: Deadline::NEVER,
            attempt: Attempt::new(1),
            apart: false,
            sent: false,
            grant: None,
            past: None,
        }
    }

    /// The bytes of its request that were kept.
    pub(super) const fn bytes(&self) -> usize {
        self.kept.bytes()
    }

    pub(super) const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether what becomes of it is no affair of the retry around it.
    pub(super) const fn is_apart(&self) -> bool {
        self.apart
    }

    /// Tells the layers below of an attempt that is about to be sent, until the guard goes;
    /// [`note_sent`](Self::note_sent) hears of what became of it.
    #[inline]
    pub(super) fn hand_on(&self, scope: &Scope, now: Instant) -> AttemptGuard {
        scope.set_sent(Some(now));
        scope.set_attempt(self.deadline, self.attempt)
    }

    /// Sends another attempt, which `grant` pays for.
    pub(super) fn send_again<S, B>(
        &mut self,
        terms: &Terms,
        scope: &Scope,
        (mut service, request, grant): Prepared<S, B>,
    ) -> S::Future
    where
        S: Service<Request<ReplayBody<B>>>,
        B: Body,
    {
        let now = scope.now();
        if let Some(past) = &mut self.past {
            past.waited = now.saturating_duration_since(past.paused);
        }
        self.grant = grant;
        let _attempt = self.hand_on(scope, now);
        let attempt = service.call(request);
        self.note_sent(terms, scope);
        attempt
    }

    #[inline(always)]
    pub(super) fn poll_attempt(&mut self, terms: &Terms, scope: &Scope, poll: impl FnOnce()) {
        let _attempt = scope.set_attempt(self.deadline, self.attempt);
        if self.sent {
            return poll();
        }
        scope.set_sent(None);
        poll();
        self.note_sent(terms, scope);
    }

    pub(super) fn poll_pause<S, B, ResBody>(
        &mut self,
        shared: &Shared<S>,
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
        let _attempt = scope.set_attempt(self.deadline, self.attempt);
        pause.poll(cx, scope.now(), &self.session, || shared.fresh())
    }

    #[inline(always)]
    pub(super) fn decide(
        &mut self,
        terms: &Terms,
        scope: &Scope,
        outcome: &Outcome<'_>,
        wall: impl FnOnce() -> SystemTime,
    ) -> Decision {
        if self.grant.is_some() {
            self.settle(outcome);
        }
        let bounds = terms.bounds(self.traits.nested);
        self.session.decide(bounds, self.traits, outcome, scope.now(), wall)
    }

    /// The present attempt is over, and was not known to have been sent.
    #[cold]
    fn settle(&mut self, outcome: &Outcome<'_>) {
        match (self.grant.take(), outcome) {
            // Refused on its way: the token goes back.
            (_, Outcome::Fault(Fault::Local | Fault::Cancelled)) => {}
            (grant, _) => grant.into_iter().for_each(Grant::sent),
        }
    }

    /// The end of a call that succeeded.
    #[inline]
    pub(super) fn succeed<B>(&mut self, scope: &Scope, slot: &mut Slot<B>) {
        if self.past.is_some() {
            self.end(scope, slot, None);
        }
    }

    /// The end of a call that did not succeed, and will not be tried again.
    #[cold]
    pub(super) fn fail<B>(&mut self, scope: &Scope, slot: &mut Slot<B>, stop: Stop) {
        observe::malformed(stop.hint);
        observe::stopped(self.session.attempts(), stop.reason);
        self.end(scope, slot, Some(stop));
    }

    /// The end of a call whose retry was granted and cannot have the body; its answer is still there.
    #[cold]
    pub(super) fn give_up<B>(&mut self, scope: &Scope, slot: &mut Slot<B>, retry: &Retry) {
        let reason = StopReason::BodyNotReplayable;
        observe::stopped(self.session.attempts(), reason);
        self.tell(scope, slot, Some(reason), wished_for(retry));
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
    #[cold]
    pub(super) fn note_retry<B>(&mut self, scope: &Scope, slot: &Slot<B>, retry: &Retry) {
        let tried = match slot {
            Poll::Ready(Ok(response)) => TriedResult::Status(response.status()),
            Poll::Ready(Err(error)) => TriedResult::Fault(error.fault()),
            Poll::Pending => return,
        };
        observe::malformed(retry.hint);
        observe::retry(self.session.attempts(), tried, retry.why, retry.after, retry.source);
        self.push(tried);
        self.attempt = self.attempt.with_number(self.session.attempts().saturating_add(1));
        if let Some(past) = &mut self.past {
            past.paused = scope.now();
        }
    }

    /// The request once more, marked as a repeat.
    pub(super) fn repeat<B>(
        &self,
        terms: &Terms,
        tape: Option<&Tape<B>>,
    ) -> Option<Request<ReplayBody<B>>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (mut head, body) = self.kept.request(tape)?.into_parts();
        self.mark(terms, &mut head, true);
        Some(Request::from_parts(head, body))
    }

    /// Tells those below which attempt it is, as far as they are to know.
    #[inline]
    pub(super) fn mark(&self, terms: &Terms, head: &mut Parts, repeat: bool) {
        // A call that a retry above makes is told of by that one, in its own words.
        if (repeat || terms.marks()) && !self.traits.nested {
            self.mark_as(terms, head, self.attempt);
        }
    }

    #[cold]
    fn mark_as(&self, terms: &Terms, head: &mut Parts, attempt: Attempt) {
        if attempt.number() > 1 || terms.spawned {
            head.extensions.insert(attempt);
        }
        if terms.spawned && self.deadline != Deadline::NEVER {
            head.extensions.insert(self.deadline);
        }
        if let Some(name) = &terms.header {
            head.headers.insert(name.clone(), HeaderValue::from(attempt.number()));
        }
    }

    fn end<B>(&mut self, scope: &Scope, slot: &mut Slot<B>, stop: Option<Stop>) {
        let tried = match slot {
            Poll::Ready(Ok(response)) => Some(TriedResult::Status(response.status())),
            // No attempts: refused by our own layers, or no longer wanted.
            Poll::Ready(Err(error)) => match error.fault() {
                Fault::Local | Fault::Cancelled => None,
                fault => Some(TriedResult::Fault(fault)),
            },
            Poll::Pending => None,
        };
        if let Some(tried) = tried {
            self.push(tried);
        }
        let retry_at = stop.and_then(|stop| stop.retry_at);
        self.tell(scope, slot, stop.map(|stop| stop.reason), retry_at);
    }

    #[inline]
    fn tell<B>(
        &mut self,
        scope: &Scope,
        slot: &mut Slot<B>,
        reason: Option<StopReason>,
        retry_at: Option<Instant>,
    ) {
        let mut report = self.past.take().map(|past| past.report).unwrap_or_default();
        report.end(self.elapsed(scope), reason, retry_at);
        match slot {
            Poll::Ready(Ok(response)) => {
                response.extensions_mut().insert(report);
            }
            Poll::Ready(Err(error)) => error.set_report(report),
            Poll::Pending => {}
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

    /// Notes whether the attempt has left the layers below.
    #[inline]
    pub(super) fn note_sent(&mut self, terms: &Terms, scope: &Scope) {
        self.sent = false;
        if let Some(at) = scope.sent() {
            self.sent = true;
            self.session.sent(terms.bounds(self.traits.nested).budget, at);
            if self.grant.is_some() {
                self.grant.take().into_iter().for_each(Grant::sent);
            }
        }
    }

    /// The call is over: tells how it went to whoever ended it, and gives back what it holds.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.kept.clear();
        self.sent = false;
        if self.grant.is_some() || self.past.is_some() {
            self.break_off();
        }
    }

    #[cold]
    fn break_off(&mut self) {
        self.grant = None;
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

    fn elapsed(&self, scope: &Scope) -> Duration {
        scope.now().saturating_duration_since(self.session.started())
    }
}
