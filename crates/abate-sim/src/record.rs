//! What a run came to: counts for each stretch of time, and totals.

use std::time::Duration;

/// One run of one scenario under one policy.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Whose policy it was.
    pub name: String,
    /// What its random numbers started from.
    pub seed: u64,
    /// The stretch of time that each of [`bins`](Self::bins) counts.
    pub step: Duration,
    /// Counts, in order of time.
    pub bins: Vec<Bin>,
    /// When the dependency, or the way to it, was in trouble.
    pub faults: Vec<Trouble>,
    /// Attempts by their number, the first at index 0.
    pub attempts: Vec<Attempts>,
    /// How long calls that succeeded took, waits included; sorted. Empty unless asked for.
    pub times_to_success: Vec<Duration>,
    /// The share of calls that may be added as retries, where a budget bounds them.
    pub budget_ratio: Option<f64>,
    /// Calls that began.
    pub calls: u64,
    /// Calls that ended well.
    pub succeeded: u64,
    /// Calls that ended otherwise.
    pub failed: u64,
    /// Attempts that were sent.
    pub sent: u64,
    /// Why calls ended without success, and how many of them, most first.
    pub endings: Vec<(&'static str, u64)>,
    /// Events that were processed.
    pub events: u64,
    /// The hash of all of them, in order: equal for equal runs.
    pub trace: u64,
}

/// A stretch of trouble.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// When it began, from the start.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
    /// What it was, in a few words: `down`, `slow ×18`.
    pub what: String,
}

/// The attempts of one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many were sent.
    pub sent: u64,
    /// How many of them brought their call to success.
    pub succeeded: u64,
}

/// What happened in one stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    /// Calls that began.
    pub calls: u32,
    /// First attempts that were sent.
    pub first: u32,
    /// Later attempts that were sent.
    pub retries: u32,
    /// Calls that ended well.
    pub succeeded: u32,
    /// Calls that ended otherwise, refused ones included.
    pub failed: u32,
    /// Attempts that a breaker refused.
    pub refused_by_breaker: u32,
    /// Attempts that a concurrency limit refused.
    pub refused_by_limit: u32,
    /// Retries that a budget did not pay for.
    pub denied_by_budget: u32,
    /// Requests whose work was done for nobody: the caller had gone.
    pub wasted: u32,
    /// Requests that the dependency turned away, or whose work failed.
    pub errors: u32,
    /// The longest that the dependency's queue was.
    pub queue: u32,
    /// The most requests that it worked on at once.
    pub busy: u32,
    /// The most calls in flight under concurrency limits, added up over processes.
    pub in_use: u32,
    /// How many breakers were not closed at the end of the stretch.
    pub breakers_open: u32,
    /// What the dependency could answer per second, where it has a number of workers.
    pub capacity: Option<f64>,
    /// The median time of the calls that ended well, where any did and it was asked for.
    pub p50: Option<Duration>,
    /// The same for 99 of 100.
    pub p99: Option<Duration>,
}

impl Run {
    /// Attempts for each call.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        share(self.sent, self.calls)
    }

    /// The share of calls that ended well.
    #[must_use]
    pub fn success(&self) -> f64 {
        share(self.succeeded, self.calls)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
