use std::time::Duration;

use abate_core::budget::SHORTEST_ATTEMPT;
use abate_core::policy::Policy;

use super::schedule::{Schedule, Wait};

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
        // As a session decides it: a retry is made if its wait leaves room for a shortest attempt.
        let begins = |wait: &&Wait| {
            let waited = wait.so_far.median.saturating_add(SHORTEST_ATTEMPT);
            attempt.saturating_mul(wait.retry).saturating_add(waited) <= total
        };
        let hanging = schedule.waits.iter().take_while(begins).count() as u32 + 1;
        Self { at_most: total.min(without_total), without_total, hanging_attempts: hanging }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn held(attempts: u32, attempt: Duration, total: Duration) -> (Duration, Duration, u32) {
        let builder = Policy::builder().with_attempts(attempts).with_attempt_timeout(attempt);
        let policy = builder.with_total_timeout(total).build().unwrap();
        let schedule = Schedule::new(policy.backoff(), attempts - 1);
        let held = Held::new(&policy, &schedule);
        (held.at_most, held.without_total, held.hanging_attempts)
    }

    #[test]
    fn the_total_timeout_or_all_attempts_and_waits_hold_a_caller_whichever_is_shorter() {
        let waits = SECOND * 7 / 10;
        assert_eq!(held(4, SECOND, 10 * SECOND), (4 * SECOND + waits, 4 * SECOND + waits, 4));
        assert_eq!(held(4, 3 * SECOND, 10 * SECOND), (10 * SECOND, 12 * SECOND + waits, 4));
        assert_eq!(held(4, 10 * SECOND, 10 * SECOND), (10 * SECOND, 40 * SECOND + waits, 1));
        // The second attempt would have less than the least that one is given.
        assert_eq!(held(2, SECOND, SECOND + SECOND / 20).2, 1);
        assert_eq!(held(2, SECOND, SECOND + SECOND / 5).2, 2);
        assert_eq!(held(1, SECOND, 10 * SECOND), (SECOND, SECOND, 1));
    }
}
