use std::time::Duration;

use abate_core::backoff::Jitter;
use abate_core::breaker::Rules;
use abate_core::config::Declared;

use super::load::Load;
use super::schedule::{Cap, Schedule};
use super::time::Held;
use crate::figures::{number, time, times};

/// Calls a second that a dependency may not have: above it, a minimum of calls is worth a warning.
const BUSY: f64 = 10.0;

/// Something that a policy may say, and that seldom does what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Warning {
    /// What to change.
    pub(super) key: &'static str,
    pub(super) message: String,
}

/// What to warn of. Of a default, nothing.
pub(super) fn warnings(
    declared: &Declared,
    schedule: &Schedule,
    held: &Held,
    load: &[Load],
) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |key, message: String| found.push(Warning { key, message });
    let policy = declared.policy();
    let (attempts, backoff) = (policy.attempts(), policy.backoff());

    if attempts > 1 {
        if backoff.jitter == Jitter::None {
            warn("jitter", "calls that failed together are repeated together".into());
        }
        if backoff.ceiling(1, Duration::ZERO).is_zero() {
            warn(
                "base",
                "the first retry follows at once, when what failed has had no time".into(),
            );
        }
        if let (true, Cap::Beyond { from }) = (declared.is_written("cap"), schedule.cap) {
            let (cap, last) = (time(backoff.cap), attempts - 1);
            let message =
                format!("{cap} would bind from retry {from} on, but the last is retry {last}");
            warn("cap", message);
        }
        if let (true, Cap::Never) = (declared.is_written("cap"), schedule.cap) {
            warn("cap", "no wait ever grows to it".into());
        }
        let total = policy.total_timeout();
        let late = schedule.waits.iter().find(|wait| wait.so_far.median >= total);
        if let Some(late) = late {
            let (attempt, total) = (late.retry + 1, time(total));
            let message = format!(
                "half of the calls never begin attempt {attempt} of {attempts} within the total_timeout \
                 of {total}, even when each fails at once"
            );
            warn("attempts", message);
        } else if policy.attempt_timeout().saturating_mul(attempts) > total {
            let (attempt, total) = (time(policy.attempt_timeout()), time(total));
            let message = format!(
                "{attempts} attempts of {attempt} are longer than the total_timeout of {total}: \
                 when each hangs, {} of them begin",
                held.hanging_attempts
            );
            warn("attempt_timeout", message);
        }
        if !declared.has_budget() {
            let times_of = |layers: usize| load.get(layers - 1).map_or(0.0, |load| load.unbounded);
            let (one, three) = (times(times_of(1)), times(times_of(3)));
            let message = format!(
                "without it, an outage gets {one} the calls; {three} through three such layers"
            );
            warn("budget", message);
        }
    }
    if declared.has_breaker() {
        breaker_warnings(declared, &mut warn);
    } else {
        warn(
            "breaker",
            "without it, calls go on to a dependency that is down, each for its whole time".into(),
        );
    }
    found
}

fn breaker_warnings(declared: &Declared, warn: &mut impl FnMut(&'static str, String)) {
    let Rules { window, minimum_calls, open_for, open_at_most, .. } = declared.policy().breaker();
    let busy = f64::from(minimum_calls) / window.as_secs_f64();
    if busy > BUSY {
        let message = format!(
            "{minimum_calls} calls within {} are {} a second: with fewer, no failure rate is judged, \
             only {} failures in a row",
            time(window),
            number(busy),
            Rules::STREAK
        );
        warn("breaker.minimum_calls", message);
    }
    if open_for > Rules::OPEN_AT_MOST {
        let message =
            format!("a dependency that is back at once is refused for up to {}", time(open_for));
        warn("breaker.open_for", message);
    } else if open_at_most > Rules::OPEN_AT_MOST * 2 {
        let message = format!(
            "a dependency that is back after a while is refused for up to {}",
            time(open_at_most)
        );
        warn("breaker.open_at_most", message);
    }
}
