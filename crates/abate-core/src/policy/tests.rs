use std::time::Duration;

use super::{Policy, PolicyBuilder};
use crate::backoff::{Backoff, Curve};
use crate::classify::Transient;

const SECOND: Duration = Duration::from_secs(1);

fn problems(builder: PolicyBuilder) -> Vec<&'static str> {
    builder.build().unwrap_err().problems().iter().map(|problem| problem.key()).collect()
}

#[test]
fn the_untouched_builder_gives_the_default_policy() {
    assert_eq!(Policy::builder().build(), Ok(Policy::default()));
}

#[test]
fn a_policy_without_backoff_is_one_that_could_be_built() {
    let built = Policy::builder().with_backoff(Backoff::NONE).build();
    assert_eq!(built, Ok(Policy::default().without_backoff()));
}

/// A change of a default is a change of behaviour for everyone, and is made here too.
#[test]
fn the_defaults_are_these() {
    let pinned = "Policy { attempts: 3, backoff: Backoff { base: 100ms, \
        curve: Exponential { factor: 2.0 }, cap: 10s, jitter: Full }, \
        classifier: Classifier { retried: {408, 425, 429, 500, 502, 503, 504}, judge: false }, \
        hints: HintSources { reset: None, ratelimit: false, grpc_pushback: false, \
        should_retry: false }, safety: Rules { rule: false, non_idempotent: IfRefused }, \
        total_timeout: 30s, attempt_timeout: 10s, \
        budget_ratio: Ratio(0.2), budget_floor: 0.2, \
        budget_earn: PerSuccess, budget_costs: Costs { asked: 1.0, server: 1.0, unsent: 1.0, \
        ambiguous: 1.0 }, breaker: Rules { \
        classifier: Classifier { retried: {408, 425, 429, 500, 502, 503, 504}, judge: false }, window: 5s, \
        failure_rate: Ratio(0.5), minimum_calls: 10, open_for: 2s, open_at_most: 30s, probes: 3, \
        slow_calls: None, attempt_timeout: Some(10s) }, concurrency: None, concurrency_wait: 1s }";
    assert_eq!(format!("{:?}", Policy::default()), pinned);
    let budget = "Rules { ratio: Ratio(0.2), earn: PerSuccess, costs: Costs { asked: 1.0, \
        server: 1.0, unsent: 1.0, ambiguous: 1.0 }, floor: 0.2, start: 2.0, burst: 1 }";
    assert_eq!(format!("{:?}", Policy::default().budget()), budget);
}

// CF-04
#[test]
fn a_policy_that_cannot_work_names_every_problem() {
    let builder = Policy::builder()
        .with_attempts(0)
        .with_base(20 * SECOND)
        .with_curve(Curve::Exponential { factor: f64::NAN })
        .with_retry_on(404)
        .with_retry_on(200)
        .with_attempt_timeout(40 * SECOND)
        .with_budget_ratio(-0.1)
        .with_budget_floor(f64::INFINITY)
        .with_breaker_failure_rate(0.0)
        .with_breaker_window(SECOND)
        .with_breaker_minimum_calls(0)
        .with_breaker_probes(0)
        .with_breaker_open_for(60 * SECOND, 30 * SECOND)
        .with_concurrency(0);
    assert_eq!(
        problems(builder.clone()),
        [
            "attempts",
            "base",
            "factor",
            "retry_on",
            "retry_on",
            "attempt_timeout",
            "budget.ratio",
            "budget.floor",
            "breaker.failure_rate",
            "breaker.window",
            "breaker.minimum_calls",
            "breaker.probes",
            "breaker.open_for",
            "concurrency",
        ]
    );
    let text = builder.build().unwrap_err().to_string();
    assert!(text.starts_with("this policy cannot work: attempts: must be at least 1"), "{text}");
    assert!(text.contains("base: 20s is above the cap of 10s"), "{text}");
    assert!(text.contains("404 would be answered the same way again"), "{text}");
}

#[test]
fn each_bound_is_refused_on_its_own() {
    let new = Policy::builder;
    for factor in [0.0, -1.0, 0.99, f64::NAN, f64::INFINITY] {
        assert_eq!(problems(new().with_curve(Curve::Exponential { factor })), ["factor"]);
    }
    for ratio in [-0.1, 1.01, f64::NAN, 1e9] {
        assert_eq!(problems(new().with_budget_ratio(ratio)), ["budget.ratio"]);
    }
    for floor in [-0.1, f64::NAN, f64::INFINITY, 1e7] {
        assert_eq!(problems(new().with_budget_floor(floor)), ["budget.floor"]);
    }
    for cost in [-0.1, f64::NAN, 1e4] {
        assert_eq!(problems(new().with_budget_cost(Transient::Server, cost)), ["budget.cost"]);
    }
    for rate in [0.0, -1.0, 1.01, 101.0, f64::NAN] {
        assert_eq!(problems(new().with_breaker_failure_rate(rate)), ["breaker.failure_rate"]);
    }
    let slow = |slow, rate| problems(new().with_breaker_slow_calls(slow, rate));
    assert_eq!(slow(Duration::ZERO, 0.5), ["breaker.slow_calls"]);
    assert_eq!(slow(SECOND, 0.0), ["breaker.slow_calls"]);
    assert_eq!(slow(SECOND, f64::NAN), ["breaker.slow_calls"]);
    for max in [0, usize::MAX] {
        assert_eq!(problems(new().with_concurrency(max)), ["concurrency"]);
    }
    assert_eq!(problems(new().with_attempt_timeout(Duration::ZERO)), ["attempt_timeout"]);
    let short = new().with_attempt_timeout(SECOND / 100).with_total_timeout(SECOND / 100);
    assert_eq!(problems(short), ["total_timeout"]);
    assert_eq!(problems(new().with_breaker_open_for(Duration::ZERO, SECOND)), ["breaker.open_for"]);
}

#[test]
fn extremes_that_can_work_are_accepted() {
    let policy = Policy::builder()
        .with_attempts(u32::MAX)
        .with_base(Duration::ZERO)
        .with_cap(Duration::MAX)
        .with_total_timeout(Duration::MAX)
        .with_attempt_timeout(Duration::MAX)
        .with_budget_ratio(1.0)
        .with_budget_floor(0.0)
        .with_concurrency_wait(Duration::ZERO)
        .with_breaker_open_for(Duration::MAX, Duration::MAX)
        .with_breaker_failure_rate(1.0)
        .build();
    assert!(policy.is_ok(), "{policy:?}");
}

#[test]
fn the_budget_of_a_fresh_process_covers_all_attempts_of_its_first_call() {
    for attempts in 1..=6 {
        let budget = Policy::builder().with_attempts(attempts).build().unwrap().budget();
        assert!(budget.start >= f64::from(attempts - 1));
        assert_eq!(budget.burst, attempts.saturating_sub(2).max(1));
    }
}
