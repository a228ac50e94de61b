use std::time::Duration;

use super::defaults;
use crate::backoff::Backoff;
use crate::budget::{Costs, Earn};
use crate::classify::{Classifier, Statuses};
use crate::ratio::Ratio;
use crate::retry_after::HintSources;
use crate::{breaker, budget, safety};

/// How calls to one dependency are repeated, limited and stopped.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use abate_core::policy::Policy;
///
/// let policy = Policy::builder()
///     .with_attempts(4)
///     .with_base(Duration::from_millis(200))
///     .with_attempt_timeout(Duration::from_secs(3))
///     .build()?;
/// assert_eq!(policy.attempts(), 4);
///
/// let error = Policy::builder().with_attempts(0).with_budget_ratio(1.5).build().unwrap_err();
/// assert_eq!(error.problems().len(), 2);
/// # Ok::<(), abate_core::policy::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub(super) attempts: u32,
    pub(super) backoff: Backoff,
    pub(super) classifier: Classifier,
    pub(super) hints: HintSources,
    pub(super) safety: safety::Rules,
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) budget_ratio: Ratio,
    pub(super) budget_floor: f64,
    pub(super) budget_earn: Earn,
    pub(super) budget_costs: Costs,
    pub(super) breaker: breaker::Rules,
    pub(super) concurrency: Option<u32>,
    pub(super) concurrency_wait: Duration,
}

impl Policy {
    /// The same policy without waits of its own between attempts: for tests in which time cannot
    /// be paused. What a server asks for is waited for all the same.
    #[must_use]
    pub const fn without_backoff(mut self) -> Self {
        self.backoff = Backoff::NONE;
        self
    }

    /// The most attempts of a call, the first included.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The waits between attempts.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The statuses that are retried.
    #[must_use]
    pub const fn retry_on(&self) -> &Statuses {
        self.classifier.retried()
    }

    /// How outcomes are judged.
    #[must_use]
    pub const fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// The headers that the dependency's hints are read from.
    #[must_use]
    pub const fn hints(&self) -> &HintSources {
        &self.hints
    }

    /// How requests are judged: which of them may be repeated, and when.
    #[must_use]
    pub const fn safety(&self) -> &safety::Rules {
        &self.safety
    }

    /// The longest that a call may take, waits and all attempts included.
    #[must_use]
    pub const fn total_timeout(&self) -> Duration {
        self.total_timeout
    }

    /// The longest that one attempt may take, to the response head.
    #[must_use]
    pub const fn attempt_timeout(&self) -> Duration {
        self.attempt_timeout
    }

    /// The budget that a private one is made from.
    #[must_use]
    pub fn budget(&self) -> budget::Rules {
        let retries = self.attempts - 1;
        budget::Rules {
            ratio: self.budget_ratio,
            earn: self.budget_earn,
            costs: self.budget_costs,
            floor: self.budget_floor,
            start: match self.budget_floor * budget::TAU.as_secs_f64() {
                idle if idle >= f64::from(retries) => idle,
                // Above what an idle budget holds, so it fades: some more, for the first call.
                _ => f64::from(retries) + 0.5,
            },
            burst: retries.saturating_sub(1).max(1),
        }
    }

    /// The breaker that a private one is made from.
    #[must_use]
    pub fn breaker(&self) -> breaker::Rules {
        self.breaker
    }

    /// The most calls in flight, where a limit is set.
    #[must_use]
    pub const fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// The longest that a call waits for its turn under that limit.
    #[must_use]
    pub const fn concurrency_wait(&self) -> Duration {
        self.concurrency_wait
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            attempts: defaults::ATTEMPTS,
            backoff: defaults::BACKOFF,
            classifier: Classifier::new(defaults::RETRY_ON),
            hints: HintSources::new(),
            safety: safety::Rules::new(),
            total_timeout: defaults::TOTAL_TIMEOUT,
            attempt_timeout: defaults::ATTEMPT_TIMEOUT,
            budget_ratio: defaults::budget_ratio(),
            budget_floor: defaults::BUDGET_FLOOR,
            budget_earn: Earn::PerSuccess,
            budget_costs: Costs::ONE,
            breaker: breaker::Rules {
                attempt_timeout: Some(defaults::ATTEMPT_TIMEOUT),
                ..breaker::Rules::default()
            },
            concurrency: None,
            concurrency_wait: defaults::CONCURRENCY_WAIT,
        }
    }
}
