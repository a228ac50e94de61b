//! E14, slow successes beside fast failures: a breaker that judged by what it has heard so far would hear
//! the failures first, and lock out a dependency of which most calls succeed.

use std::time::Duration;

use abate_core::policy::Policy;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{built, mean, model, ms, open, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Rate, Server};

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E14", title: "slow successes beside fast failures", runs: 2 * SEEDS, run };

const SEEDS: u64 = 30;
const TIMEOUT: Duration = s(30);
/// Calls begin with the process, and for this long.
const CALLS_FOR: Duration = s(60);

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, per_second, law) in [
        ("1000/s of 2 s", 1000.0, Law::Constant(s(2))),
        ("100/s of 6 s, exponential", 100.0, Law::Exponential(s(6))),
    ] {
        let runs = crew.each(SEEDS, |seed| outcome(per_second, law, CALLS_FOR, seed));
        let refused = mean(runs.iter().map(|run| run.0));
        lines.push(Line::at_most(format!("ours, {name}: false refusals"), refused, 0.01));
        let success = mean(runs.iter().map(|run| run.1));
        lines.push(Line::at_least(format!("ours, {name}: success"), success, 0.78));
    }
    lines
}

/// The attempts that the breaker refused for each call, and the share of calls that succeeded.
fn outcome(per_second: f64, law: Law, calls_for: Duration, seed: u64) -> (f64, f64) {
    let policy = built(Policy::builder().with_attempt_timeout(TIMEOUT));
    let mut group = open(per_second, Conduct::stack(policy));
    group.arrivals = Arrivals::Poisson(Rate::through(vec![
        (Duration::ZERO, per_second),
        (calls_for, per_second),
        (calls_for, 0.0),
    ]));
    let mut server = Server::new(law);
    server.error_rate = 0.3;
    server.failing = Some(Law::Constant(ms(5)));
    let run = crate::run(&model(calls_for + TIMEOUT * 2, group, server, vec![]), seed);
    let refused: u32 = run.bins.iter().map(|bin| bin.refused_by_breaker).sum();
    (f64::from(refused) / run.calls as f64, run.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_failures_do_not_lock_slow_successes_out() {
        let (refused, success) = outcome(100.0, Law::Constant(s(2)), s(10), 0);
        assert_eq!(refused, 0.0);
        assert!(success > 0.7, "{success}");
    }
}
