use std::fmt;
use std::time::{Duration, Instant};

use crate::backoff::DelaySource;
use crate::budget::{Denied, Grant};
use crate::classify::Transient;
use crate::retry_after::Hint;

/// What to do after an attempt.
#[derive(Debug)]
pub enum Decision {
    /// The answer is good, or waiting does not better it: hand it on.
    Done,
    /// Wait, then try again.
    Retry(Retry),
    /// Hand on what there is, and say why there was no other attempt.
    Stop(Stop),
}

/// A retry that was granted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Retry {
    /// How long to wait.
    pub after: Duration,
    /// When that is over.
    pub at: Instant,
    /// Where that wait comes from.
    pub source: DelaySource,
    /// Why another attempt may fare better.
    pub why: Transient,
    /// What the server said.
    pub hint: Hint,
    /// The token that pays for it; dropped, it goes back. `None` without a budget.
    pub grant: Option<Grant>,
}

/// The end of a call that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stop {
    /// Why there is no other attempt.
    pub reason: StopReason,
    /// When the server wants to be called again, where it said so.
    pub retry_at: Option<Instant>,
    /// What the server said.
    pub hint: Hint,
}

impl Stop {
    /// An end for `reason`, of which the server said nothing.
    #[must_use]
    pub const fn because(reason: StopReason) -> Self {
        Self { reason, retry_at: None, hint: Hint::ABSENT }
    }
}

/// Why a call was not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// All attempts were made.
    Attempts,
    /// The next one would not have fitted into the time left.
    Deadline,
    /// The retry budget is empty.
    Budget,
    /// Too many retries wait to be sent already.
    Pace,
    /// The failure is not one that waiting cures.
    NotRetryable,
    /// The request may have been carried out, and doing it twice may do harm.
    NotIdempotent,
    /// The body can be sent only once.
    BodyNotReplayable,
    /// A layer of ours refused the attempt: a breaker, a limit.
    Refused,
    /// A retry layer above this one does the retrying.
    Nested,
    /// The caller cancelled it.
    Cancelled,
}

impl StopReason {
    /// The reason in one lower-case word or two, for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::Pace => "pace",
            Self::NotRetryable => "not_retryable",
            Self::NotIdempotent => "not_idempotent",
            Self::BodyNotReplayable => "body_not_replayable",
            Self::Refused => "refused",
            Self::Nested => "nested",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Denied> for StopReason {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Empty => Self::Budget,
            Denied::Pace => Self::Pace,
            Denied::Deadline => Self::Deadline,
        }
    }
}
