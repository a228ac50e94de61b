use std::time::Duration;

use abate_core::policy::Policy;

use super::schedule::Schedule;

/// How long a caller is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// At the most.
    pub(super) at_most: Duration,
    /// Without the total timeout: every attempt hangs and every wait is the longest.
    pub(super) without_total: Duration,
    /// The attempts that begin within the total timeout when each hangs and each wait is a usual one.
    pub(super) hanging_attempts: u32,
}

impl Held {
    pub(super) fn new(policy: &Policy, schedule: &Schedule) -> Self {
        let (attempt, total) = (policy.attempt_timeout(), policy.total_timeout());
        let all = attempt.saturating_mul(policy.attempts());
        let without_total = all.saturating_add(schedule.longest());
        let waits = schedule.waits.iter();
        let begins = |wait: &&super::schedule::Wait| {
            attempt.saturating_mul(wait.retry).saturating_add(wait.so_far.median) < total
        };
        let hanging = waits.take_while(begins).count() as u32 + 1;
        Self { at_most: total.min(without_total), without_total, hanging_attempts: hanging }
    }
}
