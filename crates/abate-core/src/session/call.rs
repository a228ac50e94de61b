use std::time::{Duration, Instant, SystemTime};

use super::decision::{Decision, Retry, Stop, StopReason};
use crate::budget::{Budget, SHORTEST_ATTEMPT};
use crate::classify::{Transient, Verdict};
use crate::deadline::Deadline;
use crate::outcome::{Fault, Outcome};
use crate::policy::Policy;
use crate::retry_after::{Hint, Pushback, PushbackHeader};
use crate::rng::{Stream, Streams};
use crate::safety::Safety;

/// A timer may be late by about a millisecond; that alone is no reason to give up a retry.
const TIMER_SLACK: Duration = Duration::from_millis(2);

/// What bounds a call, beside its own history.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// The rules.
    pub policy: &'a Policy,
    /// The budget that retries are paid from; `None` pays nothing.
    pub budget: Option<&'a Budget>,
    /// Where jitter comes from.
    pub streams: &'a Streams,
}

/// What is known of a request, whatever becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// When it may be repeated.
    pub safety: Safety,
    /// Whether its body can be sent again.
    pub replayable: bool,
    /// Whether a retry above this one retries it already; this one then does not.
    pub nested: bool,
}

/// One call, from its first attempt to its last.
#[derive(Debug, Clone)]
pub struct Session {
    started: Instant,
    /// The caller's deadline, and what the policy allows.
    deadline: Deadline,
    total: Duration,
    attempts: u32,
    last_delay: Duration,
    counted: bool,
    stream: Option<Stream>,
}

impl Session {
    /// A call that starts at `now` and must end by `deadline`, and within the policy's total time.
    #[inline]
    #[must_use]
    pub fn new(policy: &Policy, deadline: Deadline, now: Instant) -> Self {
        Self {
            started: now,
            deadline,
            total: policy.total_timeout(),
            attempts: 0,
            last_delay: Duration::ZERO,
            counted: false,
            stream: None,
        }
    }

    /// When it started.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// When it must have ended.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.started, self.total).earlier(self.deadline)
    }

    /// The attempts whose outcome is known and that reached beyond our own layers.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// An attempt was sent at `at`: the first one counts the call.
    #[inline]
    pub fn sent(&mut self, budget: Option<&Budget>, at: Instant) {
        if !self.counted {
            self.counted = true;
            if let Some(budget) = budget {
                budget.count_call(at);
            }
        }
    }

    /// Whether a retry that is about to be sent at `now`, all its waits over, still has the time
    /// of the shortest attempt.
    #[must_use]
    pub fn has_time(&self, now: Instant) -> bool {
        self.deadline().remaining(now).saturating_add(TIMER_SLACK) >= SHORTEST_ATTEMPT
    }

    /// An attempt came to `outcome` at `now`; what next?
    ///
    /// `wall` is asked for the wall clock only by a server date that comes without a `Date`.
    #[inline(always)]
    pub fn decide(
        &mut self,
        bounds: Bounds<'_>,
        traits: Traits,
        outcome: &Outcome<'_>,
        now: Instant,
        wall: impl FnOnce() -> SystemTime,
    ) -> Decision {
        let verdict = bounds.policy.classifier().verdict(outcome);
        if verdict != Verdict::Success {
            return self.after_failure(bounds, traits, *outcome, verdict, now, wall);
        }
        self.answered(bounds, now);
        self.done(bounds)
    }

    /// An attempt reached beyond our own layers.
    #[inline]
    fn answered(&mut self, bounds: Bounds<'_>, now: Instant) {
        self.sent(bounds.budget, now);
        self.attempts = self.attempts.saturating_add(1);
    }

    #[inline]
    fn done(&self, bounds: Bounds<'_>) -> Decision {
        if let Some(budget) = bounds.budget {
            budget.earn();
        }
        Decision::Done
    }

    #[cold]
    fn after_failure(
        &mut self,
        bounds: Bounds<'_>,
        traits: Traits,
        outcome: Outcome<'_>,
        verdict: Verdict,
        now: Instant,
        wall: impl FnOnce() -> SystemTime,
    ) -> Decision {
        if let Verdict::Ours(fault) = verdict {
            return Decision::Stop(Stop::because(self.why_ours(fault, now)));
        }
        self.answered(bounds, now);
        let hint = match outcome {
            Outcome::Response { headers, .. } => Hint::read(headers, bounds.policy.hints(), wall),
            Outcome::Fault(_) => Hint::ABSENT,
        };
        let why = match (hint.again(), verdict) {
            (Some(false), _) => None,
            (_, Verdict::Transient(why)) => Some(why),
            (Some(true), _) => Some(Transient::Asked),
            (None, _) => None,
        };
        match why {
            None if verdict.earns() => self.done(bounds),
            None => Decision::Stop(stop(StopReason::NotRetryable, hint, now)),
            Some(why) => match self.try_again(bounds, traits, &outcome, why, hint, now) {
                Ok(retry) => Decision::Retry(retry),
                Err(reason) => Decision::Stop(stop(reason, hint, now)),
            },
        }
    }

    fn why_ours(&self, fault: Fault, now: Instant) -> StopReason {
        match fault {
            Fault::Cancelled if self.deadline().remaining(now).is_zero() => StopReason::Deadline,
            Fault::Cancelled => StopReason::Cancelled,
            _ => StopReason::Refused,
        }
    }

    fn try_again(
        &mut self,
        bounds: Bounds<'_>,
        traits: Traits,
        outcome: &Outcome<'_>,
        why: Transient,
        hint: Hint,
        now: Instant,
    ) -> Result<Retry, StopReason> {
        if traits.nested {
            return Err(StopReason::Nested);
        }
        // A server that says when to send this call again has said that it may be.
        let invited = hint.pushback().map(Pushback::header) == Some(PushbackHeader::GrpcPushback);
        if !invited && !traits.safety.allows_after(outcome, self.attempts) {
            return Err(StopReason::NotIdempotent);
        }
        if self.attempts >= bounds.policy.attempts() {
            return Err(StopReason::Attempts);
        }
        if !traits.replayable {
            return Err(StopReason::BodyNotReplayable);
        }
        let left = self.deadline().remaining(now);
        let stream = self.stream.get_or_insert_with(|| bounds.streams.next());
        let wish = hint.pushback().map(Pushback::delay);
        let backoff = bounds.policy.backoff();
        let (mut after, source) = backoff.delay(self.attempts, self.last_delay, wish, stream);
        if let Some(wish) = wish
            && let Some(room) = left.saturating_sub(SHORTEST_ATTEMPT).checked_sub(wish)
            && after > wish.saturating_add(room)
        {
            // What the server asked for fits: the spread above it alone must not decide that a
            // call is given up.
            after = wish.saturating_add(stream.up_to(room));
        }
        if after.saturating_add(SHORTEST_ATTEMPT) > left {
            return Err(StopReason::Deadline);
        }
        // Without a deadline a server can ask for more time than a clock can count.
        let at = now.checked_add(after).ok_or(StopReason::Deadline)?;
        let grant = match bounds.budget {
            Some(budget) => Some(budget.grant(now, after, left.saturating_sub(after), why)?),
            None => None,
        };
        self.last_delay = after;
        Ok(Retry { after, at, source, why, hint, grant })
    }
}

fn stop(reason: StopReason, hint: Hint, now: Instant) -> Stop {
    // When a server that gave a hint wants to be called again.
    let wish = hint.pushback().map(Pushback::delay).filter(|delay| !delay.is_zero());
    Stop { reason, retry_at: wish.and_then(|delay| now.checked_add(delay)), hint }
}
