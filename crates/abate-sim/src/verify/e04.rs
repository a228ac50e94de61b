//! E4, the floor of each process: what a budget grants without any success, times the processes.
//!
//! A thousand calls a second, all of which fail, evenly over a minute and at random over processes. The peer
//! is tower's budget as it comes, a fifth of what was counted within ten seconds and ten a second on top. Its
//! ten slots of a second are written over two at a time whenever a process's call does not come
//! at the very end of a slot, so that it grants its hundred every six seconds there and not every
//! ten: a sixth of a thousand calls for ten processes, not a tenth.

use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::policy::{Policy, PolicyBuilder};

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{built, mean, model, most, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Guarding, Payment, Rate, Server};
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "E4",
    title: "floors of many processes add up",
    runs: 10 * SEEDS + RATIOS.len() as u64,
    run,
};

const SEEDS: u64 = 30;
const PER_SECOND: f64 = 1000.0;
const LENGTH: Duration = s(60);
/// What processes have at their start is spent in these.
const FIRST_SECONDS: Duration = s(5);
const TOLERANCE: f64 = 0.01;
const PROCESSES: [(u32, f64); 4] = [(1, 1.010), (10, 1.167), (100, 2.527), (1000, 4.000)];
const MOST_PROCESSES: u32 = 1000;
const PEER: Payment =
    Payment::Window { calls_per_retry: 5, floor: 10, window: s(10), on_success: true };
const RATIOS: [f64; 6] = [0.15, 0.3, 0.4, 0.6, 0.7, 0.9];

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let peer = Conduct { payment: PEER, ..plain(4, None, Backoff::NONE) };
    for (processes, expected) in PROCESSES {
        let runs = outages(crew, &peer, processes, LENGTH);
        let got = mean(runs.iter().map(Run::amplification));
        lines.push(Line::near(format!("tower's, {processes} processes"), got, expected, TOLERANCE));
    }
    for (processes, _) in PROCESSES {
        let runs = outages(crew, &budget_alone(Policy::builder()), processes, LENGTH);
        let name = format!("ours, {processes} processes, no store");
        let got = mean(runs.iter().map(Run::amplification));
        lines.push(Line::at_most(format!("{name}: mean"), got, 1.20));
        if processes == MOST_PROCESSES {
            lines.extend(worst_seconds(&name, &runs));
        }
    }
    for attempts in [4, 5] {
        let ours = budget_alone(Policy::builder().with_attempts(attempts));
        let runs = outages(crew, &ours, MOST_PROCESSES, FIRST_SECONDS);
        let name = format!("ours, {MOST_PROCESSES} processes, {attempts} attempts");
        lines.extend(worst_seconds(&name, &runs));
    }
    lines.push(Line::later("ours with a store: worst second", "comes with the fleet budget"));
    let ratios = crew.each(RATIOS.len() as u64, |case| {
        RATIOS.get(case as usize).map(|ratio| (*ratio, retries_per_success(*ratio)))
    });
    lines.extend(ratios.into_iter().flatten().map(|(ratio, got)| {
        Line::within(format!("ours, ratio {ratio}: retries a success"), got, ratio, 0.001)
    }));
    lines
}

/// The stack without its breaker, which would leave the budget nothing to do.
fn budget_alone(policy: PolicyBuilder) -> Conduct {
    Conduct { breaker: Guarding::Off, ..Conduct::stack(built(policy)) }
}

fn outages(crew: &Crew<'_>, conduct: &Conduct, processes: u32, length: Duration) -> Vec<Run> {
    crew.each(SEEDS, |seed| outage(conduct, processes, length, seed))
}

fn outage(conduct: &Conduct, processes: u32, length: Duration, seed: u64) -> Run {
    let mut group = open(PER_SECOND, conduct.clone());
    group.clients = processes;
    group.arrivals = Arrivals::Even(Rate::constant(PER_SECOND));
    let mut server = Server::new(Law::NOTHING);
    server.error_rate = 1.0;
    crate::run(&model(length, group, server, vec![]), seed)
}

/// In the first second most processes make their first call, which may take all its attempts.
fn worst_seconds(name: &str, runs: &[Run]) -> [Line; 2] {
    let worst = |skipped| most(runs.iter().map(|run| worst_second(run, skipped)));
    [
        Line::reported(format!("{name}: worst second"), worst(0)),
        Line::reported(format!("{name}: worst second but the first"), worst(1)),
    ]
}

fn worst_second(run: &Run, skipped: usize) -> f64 {
    let bins = run.bins.iter().skip(skipped);
    most(bins.map(|bin| f64::from(bin.first + bin.retries) / f64::from(bin.calls)))
}

/// Of a budget without floor, at calls of which half never work, so that more retries are wanted than
/// earned. 500 are earned a second: of the fraction of a token in stock, 0.01 % of them fades.
fn retries_per_success(ratio: f64) -> f64 {
    let policy = Policy::builder().with_budget_floor(0.0).with_budget_ratio(ratio);
    let per_second = 1000.0 / ratio;
    let mut group = open(per_second, budget_alone(policy));
    group.arrivals = Arrivals::Even(Rate::constant(per_second));
    let mut server = Server::new(Law::NOTHING);
    server.hopeless = 0.5;
    let run = crate::run(&model(s(65), group, server, vec![]), 0);
    let (retries, successes) = run.bins.iter().skip(5).fold((0.0, 0.0), |sums, bin| {
        (sums.0 + f64::from(bin.retries), sums.1 + f64::from(bin.succeeded))
    });
    retries / successes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towers_budget_grants_its_reserve_every_ten_seconds_to_one_process() {
        let peer = Conduct { payment: PEER, ..plain(4, None, Backoff::NONE) };
        let run = outage(&peer, 1, s(5), 0);
        assert_eq!(run.sent - run.calls, 100);
        let run = outage(&peer, 1, s(15), 0);
        assert_eq!(run.sent - run.calls, 200);
    }
}
