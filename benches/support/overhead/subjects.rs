use std::mem;
use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, Backoff, CircuitBreakerLayer, ConcurrencyLimitLayer, CooldownLayer,
    DeadlineLayer, Policy, PolicyError, RetryAfterLayer, RetryBudgetLayer, RetryLayer, Stack,
};
use http::Response;
use tower::{BoxError, Layer, Service};

use super::caller::{Caller, Calls};
use super::client::{Call, request};
use super::peers;
use super::scenario::{Path, Scenario, Subject};

pub(super) const LIMIT: usize = 1000;
pub(super) const LONG: Duration = Duration::from_secs(10);

/// Fills pools, and empties the budget of those who are to have none.
const WARM_UP: u32 = 200;

/// What makes the calls of a scenario, warmed up.
pub(super) fn caller(scenario: Scenario) -> Result<Box<dyn Caller>, BoxError> {
    let mut caller = cold(scenario)?;
    let succeeded = caller.call(WARM_UP);
    let expected = if scenario.path.succeeds() { WARM_UP } else { 0 };
    // A budget that is to be empty is so only after some calls; the bare client knows no paths.
    let begins_full = matches!(scenario.path, Path::RepeatRefused) && succeeded < 10;
    if succeeded == expected || scenario.subject == Subject::Bare || begins_full {
        return Ok(caller);
    }
    Err(format!("{scenario}: {succeeded} of {WARM_UP} calls succeeded, not {expected}").into())
}

fn cold(scenario: Scenario) -> Result<Box<dyn Caller>, BoxError> {
    let Scenario { subject, path } = scenario;
    let (policy, client) = (policy(scenario)?, path.client());
    Ok(match subject {
        Subject::Bare => over(client, path),
        Subject::Tower => over(peers::tower(client), path),
        Subject::TowerResilience => over(peers::tower_resilience(client)?, path),
        Subject::Seatbelt => over(peers::seatbelt(client), path),
        Subject::StackUnlimited | Subject::Stack => {
            let stack = Stack::new(policy);
            if path == Path::BreakerOpen {
                stack.breaker().force_open();
            }
            over(stack.layer(client), path)
        }
        Subject::Retry => over(RetryLayer::new(policy).layer(client), path),
        Subject::RetryBudget => over(RetryBudgetLayer::new(policy).layer(client), path),
        Subject::Breaker => {
            let breaker = CircuitBreakerLayer::new(policy);
            if path == Path::BreakerOpen {
                breaker.handle().force_open();
            }
            over(breaker.layer(client), path)
        }
        Subject::RetryAfter => over(RetryAfterLayer::new().layer(client), path),
        Subject::Limit => over(ConcurrencyLimitLayer::from_policy(policy).layer(client), path),
        Subject::AttemptTimeout => over(AttemptTimeoutLayer::new(LONG).layer(client), path),
        Subject::Deadline => over(DeadlineLayer::new(LONG).layer(client), path),
        Subject::Cooldown => over(CooldownLayer::new(policy).layer(client), path),
    })
}

fn over<S, R>(mut service: S, path: Path) -> Box<dyn Caller>
where
    S: Service<Call, Response = Response<R>> + Clone + Send + 'static,
{
    if path == Path::LimitFull {
        // The one call that the limit allows, which never ends.
        mem::forget(service.call(request(path)));
    }
    Box::new(Calls { service, path })
}

fn policy(Scenario { subject, path }: Scenario) -> Result<Policy, PolicyError> {
    let mut policy = Policy::builder();
    if matches!(subject, Subject::Stack | Subject::Limit) {
        policy = policy.with_concurrency(LIMIT);
    }
    match path {
        Path::LimitFull => policy.with_concurrency(1).with_concurrency_wait(Duration::ZERO),
        // What the budget starts with is spent by the warm-up.
        Path::RepeatRefused | Path::BudgetEmpty => policy
            .with_attempts(2)
            .with_backoff(Backoff::NONE)
            .with_budget_ratio(0.0)
            .with_budget_floor(0.0),
        // A budget starts with the retries of one call: here they are for all.
        Path::OneRetry => policy
            .with_attempts(1_000_000)
            .with_backoff(Backoff::NONE)
            .with_breaker_failure_rate(1.0),
        _ => policy,
    }
    .build()
}
