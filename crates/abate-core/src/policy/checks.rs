//! What a policy may not say.

use super::builder::PolicyBuilder;
use super::defaults;
use super::problem::Problem;
use crate::backoff::{Backoff, Curve, Jitter};
use crate::classify::Transient;
use crate::ratio::Ratio;
use crate::{breaker, budget};

/// Limits above this are no limits, and more than a semaphore counts.
const MOST_CONCURRENT: usize = u32::MAX as usize >> 3;

/// More probes than this are no probes.
const MOST_PROBES: u32 = 100;

impl PolicyBuilder {
    pub(super) fn check_retry(&self, problems: &mut Vec<Problem>) {
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

    pub(super) fn check_timeouts(&self, problems: &mut Vec<Problem>) {
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

    pub(super) fn check_budget(&self, problems: &mut Vec<Problem>) {
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
            if !(0.0..=budget::Costs::MOST).contains(&cost) {
                let message = format!("must be 0 to 1,000 tokens, but is {cost} for {why:?}");
                problems.push(Problem::new("budget.cost", message));
            }
        }
    }

    pub(super) fn check_breaker(&self, problems: &mut Vec<Problem>) {
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

    pub(super) fn check_concurrency(&self, problems: &mut Vec<Problem>) {
        if let Some(max) = self.concurrency
            && !(1..=MOST_CONCURRENT).contains(&max)
        {
            let message = format!("must be 1 to {MOST_CONCURRENT}, but is {max}");
            problems.push(Problem::new("concurrency", message));
        }
    }
}
