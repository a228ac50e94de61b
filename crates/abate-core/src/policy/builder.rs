use std::time::Duration;

use super::problem::PolicyError;
use super::value::Policy;
use crate::backoff::{Backoff, Curve, Jitter};
use crate::budget::{Costs, Earn};
use crate::classify::{Classifier, Judge, Transient};
use crate::ratio::Ratio;
use crate::retry_after::HintSources;
use crate::{breaker, grpc, safety};

/// A [`Policy`] in the making. Nothing is checked before [`PolicyBuilder::build`], which then
/// names all that is wrong at once.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    pub(super) attempts: u32,
    pub(super) backoff: Backoff,
    pub(super) classifier: Classifier,
    pub(super) hints: HintSources,
    pub(super) safety: safety::Rules,
    pub(super) not_a_failure: Vec<u16>,
    pub(super) total_timeout: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) budget_ratio: f64,
    pub(super) budget_floor: f64,
    pub(super) budget_earn: Earn,
    pub(super) budget_costs: Costs,
    pub(super) failure_rate: f64,
    pub(super) slow_calls: Option<(Duration, f64)>,
    pub(super) breaker: breaker::Rules,
    pub(super) concurrency: Option<usize>,
    pub(super) concurrency_wait: Duration,
}

impl Policy {
    /// A builder that starts from the defaults.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}

impl PolicyBuilder {
    /// The most attempts of a call, the first included; at least 1.
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// The waits between attempts, all at once: such as [`Backoff::SIDEKIQ`].
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The upper bound of the first wait.
    pub fn with_base(mut self, base: Duration) -> Self {
        self.backoff.base = base;
        self
    }

    /// What the upper bound of a wait never exceeds.
    pub fn with_cap(mut self, cap: Duration) -> Self {
        self.backoff.cap = cap;
        self
    }

    /// How the upper bound grows from wait to wait.
    pub fn with_curve(mut self, curve: Curve) -> Self {
        self.backoff.curve = curve;
        self
    }

    /// How a wait is drawn below its upper bound.
    pub fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.backoff.jitter = jitter;
        self
    }

    /// Retries this status as well; one of 400..=599 that waiting can change.
    pub fn with_retry_on(mut self, status: u16) -> Self {
        let retried = self.classifier.retried_mut();
        *retried = retried.with(status);
        if !(400..600).contains(&status) {
            self.not_a_failure.push(status);
        }
        self
    }

    /// Does not retry this status, although the defaults do.
    pub fn with_never_retry(mut self, status: u16) -> Self {
        let retried = self.classifier.retried_mut();
        *retried = retried.without(status);
        self
    }

    /// Judges responses by `judge` first, for dependencies whose status does not tell.
    pub fn with_judge(mut self, judge: Judge) -> Self {
        self.classifier = self.classifier.with_judge(judge);
        self
    }

    /// The headers that the dependency's hints are read from, beside `Retry-After`.
    pub fn with_hints(mut self, hints: HintSources) -> Self {
        self.hints = hints;
        self
    }

    /// Asks `rule` whether a request may be repeated, after its mark and before its key and method.
    pub fn with_idempotent(mut self, rule: safety::Rule) -> Self {
        self.safety = self.safety.with_idempotent(rule);
        self
    }

    /// What requests may do that are not idempotent by mark, rule, key or method.
    pub fn with_non_idempotent(mut self, rule: safety::NonIdempotent) -> Self {
        self.safety = self.safety.with_non_idempotent(rule);
        self
    }

    /// Judges responses by their `grpc-status`, see [`grpc`], and obeys `grpc-retry-pushback-ms`.
    pub fn with_grpc(mut self) -> Self {
        self.hints = self.hints.with_grpc_pushback();
        self.with_judge(grpc::judge)
    }

    /// The longest that a call may take, waits and all attempts included.
    pub fn with_total_timeout(mut self, timeout: Duration) -> Self {
        self.total_timeout = timeout;
        self
    }

    /// The longest that one attempt may take, to the response head.
    pub fn with_attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// Retries earned by a success, 0 to 1.
    pub fn with_budget_ratio(mut self, ratio: f64) -> Self {
        self.budget_ratio = ratio;
        self
    }

    /// Retries per second that need no success.
    pub fn with_budget_floor(mut self, per_second: f64) -> Self {
        self.budget_floor = per_second;
        self
    }

    /// What earns the tokens of the budget.
    pub fn with_budget_earn(mut self, earn: Earn) -> Self {
        self.budget_earn = earn;
        self
    }

    /// What a retry because of `why` costs, in tokens; one each unless told otherwise.
    pub fn with_budget_cost(mut self, why: Transient, tokens: f64) -> Self {
        self.budget_costs = self.budget_costs.with(why, tokens);
        self
    }

    /// The share of failures that opens the breaker, above 0 and up to 1.
    pub fn with_breaker_failure_rate(mut self, rate: f64) -> Self {
        self.failure_rate = rate;
        self
    }

    /// Opens the breaker also when the share `rate` of calls, above 0 and up to 1, takes `slow` or
    /// longer to the response head.
    pub fn with_breaker_slow_calls(mut self, slow: Duration, rate: f64) -> Self {
        self.slow_calls = Some((slow, rate));
        self
    }

    /// How far back outcomes count for the breaker.
    pub fn with_breaker_window(mut self, window: Duration) -> Self {
        self.breaker.window = window;
        self
    }

    /// The least number of calls that the breaker judges a rate from.
    pub fn with_breaker_minimum_calls(mut self, calls: u32) -> Self {
        self.breaker.minimum_calls = calls;
        self
    }

    /// How long the breaker stays open, at first and at the most.
    pub fn with_breaker_open_for(mut self, first: Duration, at_most: Duration) -> Self {
        self.breaker.open_for = first;
        self.breaker.open_at_most = at_most;
        self
    }

    /// The probes that a half-open breaker lets through.
    pub fn with_breaker_probes(mut self, probes: u32) -> Self {
        self.breaker.probes = probes;
        self
    }

    /// The most calls in flight to the end of their bodies. About twice the peak rate times the
    /// 99th percentile of latency leaves healthy traffic alone.
    pub fn with_concurrency(mut self, max: usize) -> Self {
        self.concurrency = Some(max);
        self
    }

    /// The longest that a call waits for its turn under that limit; zero refuses at once.
    pub fn with_concurrency_wait(mut self, wait: Duration) -> Self {
        self.concurrency_wait = wait;
        self
    }

    /// The policy, if it can work.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] with every problem there is.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let mut problems = Vec::new();
        self.check_retry(&mut problems);
        self.check_timeouts(&mut problems);
        self.check_budget(&mut problems);
        self.check_breaker(&mut problems);
        self.check_concurrency(&mut problems);
        let ratio = |value| Ratio::new(value).unwrap_or(Ratio::ZERO);
        PolicyError::unless_none(problems)?;
        Ok(Policy {
            attempts: self.attempts,
            backoff: self.backoff,
            classifier: self.classifier,
            hints: self.hints,
            safety: self.safety,
            total_timeout: self.total_timeout,
            attempt_timeout: self.attempt_timeout,
            budget_ratio: ratio(self.budget_ratio),
            budget_floor: self.budget_floor,
            budget_earn: self.budget_earn,
            budget_costs: self.budget_costs,
            breaker: breaker::Rules {
                classifier: self.classifier,
                failure_rate: ratio(self.failure_rate),
                slow_calls: self.slow_calls.map(|(slow, rate)| (slow, ratio(rate))),
                attempt_timeout: Some(self.attempt_timeout),
                ..self.breaker
            },
            concurrency: self.concurrency.and_then(|max| u32::try_from(max).ok()),
            concurrency_wait: self.concurrency_wait,
        })
    }
}

impl Default for PolicyBuilder {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            attempts: policy.attempts,
            backoff: policy.backoff,
            classifier: policy.classifier,
            hints: policy.hints,
            safety: policy.safety,
            not_a_failure: Vec::new(),
            total_timeout: policy.total_timeout,
            attempt_timeout: policy.attempt_timeout,
            budget_ratio: policy.budget_ratio.as_f64(),
            budget_floor: policy.budget_floor,
            budget_earn: policy.budget_earn,
            budget_costs: policy.budget_costs,
            failure_rate: policy.breaker.failure_rate.as_f64(),
            slow_calls: None,
            breaker: policy.breaker,
            concurrency: None,
            concurrency_wait: policy.concurrency_wait,
        }
    }
}
