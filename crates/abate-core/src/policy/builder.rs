use std::time::Duration;

use super::defaults;
use super::problem::{PolicyError, Problem};
use super::value::Policy;
use crate::backoff::{Backoff, Curve, Jitter};
use crate::budget::{Costs, Earn};
use crate::classify::{Classifier, Judge, Transient};
use crate::ratio::Ratio;
use crate::retry_after::HintSources;
use crate::{breaker, budget, safety};
use crate::{breaker, budget, grpc};

/// Limits above this are no limits, and more than a semaphore counts.
const MOST_CONCURRENT: usize = u32::MAX as usize >> 3;

/// More probes than this are no probes.
const MOST_PROBES: u32 = 100;

/// A [`Policy`] in the making. Nothing is checked before [`PolicyBuilder::build`], which then
/// names all that is wrong at once.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    attempts: u32,
    backoff: Backoff,
    classifier: Classifier,
    hints: HintSources,
    safety: safety::Rules,
    not_a_failure: Vec<u16>,
    total_timeout: Duration,
    attempt_timeout: Duration,
    budget_ratio: f64,
    budget_floor: f64,
    budget_earn: Earn,
    budget_costs: Costs,
    failure_rate: f64,
    slow_calls: Option<(Duration, f64)>,
    breaker: breaker::Rules,
    concurrency: Option<usize>,
    concurrency_wait: Duration,
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

    fn check_retry(&self, problems: &mut Vec<Problem>) {
        let mut problem = |key, message: String| problems.push(Problem::new(key, message));
        if self.attempts == 0 {
            problem("attempts", "must be at least 1, since the first attempt counts".into());
        }
        let Backoff { base, cap, curve, jitter } = self.backoff;
        if base > cap {
            problem("base", format!("{base:?} is above the cap of {cap:?}"));
        }
        match curve {
            Curve::Exponential { factor } if !(factor.is_finite() && factor >= 1.0) => {
                problem("factor", format!("must be a number of at least 1, but is {factor}"));
            }
            Curve::Polynomial { power: 0 } => {
                problem("power", "must be at least 1; a fixed wait is `Curve::Fixed`".into());
            }
            _ => {}
        }
        if jitter == (Jitter::AddedInSteps { steps: 0 }) {
            problem("jitter", "must have at least one step to choose from".into());
        }
        if jitter == Jitter::Decorrelated && base.is_zero() {
            problem("base", "decorrelated jitter grows from it, and nothing grows from 0".into());
        }
        for status in &self.not_a_failure {
            problem("retry_on", format!("{status} is not among the failures, 400 to 599"));
        }
        for status in
            self.classifier.retried().iter().filter(|code| defaults::NEVER_RETRY.contains(*code))
        {
            problem("retry_on", format!("{status} would be answered the same way again"));
        }
    }

    fn check_timeouts(&self, problems: &mut Vec<Problem>) {
        let mut problem = |key, message: String| problems.push(Problem::new(key, message));
        let (attempt, total) = (self.attempt_timeout, self.total_timeout);
        if attempt.is_zero() {
            problem("attempt_timeout", "must be longer than nothing".into());
        }
        if total < budget::SHORTEST_ATTEMPT {
            let least = budget::SHORTEST_ATTEMPT;
            problem("total_timeout", format!("{total:?} leaves no attempt its least, {least:?}"));
        }
        if attempt > total {
            problem(
                "attempt_timeout",
                format!("{attempt:?} is never reached within the total of {total:?}"),
            );
        }
    }

    fn check_budget(&self, problems: &mut Vec<Problem>) {
        if let Err(error) = Ratio::new(self.budget_ratio) {
            problems.push(Problem::new("budget.ratio", error.to_string()));
        }
        let floor = self.budget_floor;
        if !(0.0..=1e6).contains(&floor) {
            let message = format!("must be 0 to 1,000,000 retries per second, but is {floor}");
            problems.push(Problem::new("budget.floor", message));
        }
        let reasons =
            [Transient::Asked, Transient::Server, Transient::Unsent, Transient::Ambiguous];
        for why in reasons {
            let cost = self.budget_costs.of(why);
            if !(0.0..=1e3).contains(&cost) {
                let message = format!("must be 0 to 1,000 tokens, but is {cost} for {why:?}");
                problems.push(Problem::new("budget.cost", message));
            }
        }
    }

    fn check_breaker(&self, problems: &mut Vec<Problem>) {
        let mut problem = |key, message: String| problems.push(Problem::new(key, message));
        let breaker::Rules { window, minimum_calls, open_for, open_at_most, probes, .. } =
            self.breaker;
        let rate = self.failure_rate;
        if !(rate > 0.0 && rate <= 1.0) {
            problem("breaker.failure_rate", format!("must be above 0 and up to 1, but is {rate}"));
        }
        if let Some((slow, rate)) = self.slow_calls {
            if slow.is_zero() {
                problem("breaker.slow_calls", "every call takes longer than nothing".into());
            }
            if !(rate > 0.0 && rate <= 1.0) {
                let message = format!("the rate must be above 0 and up to 1, but is {rate}");
                problem("breaker.slow_calls", message);
            }
        }
        let least = breaker::Rules::EVIDENCE * 2;
        if window < least {
            problem(
                "breaker.window",
                format!("{window:?} is too short to hold evidence of 2 s; at least {least:?}"),
            );
        }
        if minimum_calls == 0 {
            problem("breaker.minimum_calls", "must be at least 1".into());
        }
        if !(1..=MOST_PROBES).contains(&probes) {
            problem("breaker.probes", format!("must be 1 to {MOST_PROBES}, but is {probes}"));
        }
        if open_for.is_zero() {
            problem("breaker.open_for", "must be longer than nothing".into());
        }
        if open_for > open_at_most {
            problem(
                "breaker.open_for",
                format!("{open_for:?} is above the longest open time of {open_at_most:?}"),
            );
        }
    }

    fn check_concurrency(&self, problems: &mut Vec<Problem>) {
        if let Some(max) = self.concurrency
            && !(1..=MOST_CONCURRENT).contains(&max)
        {
            let message = format!("must be 1 to {MOST_CONCURRENT}, but is {max}");
            problems.push(Problem::new("concurrency", message));
        }
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
