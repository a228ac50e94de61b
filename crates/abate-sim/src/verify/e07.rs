//! E7, a metastable failure ("Metastable Failures in Distributed Systems", HotOS 2021).
//!
//! Thirty workers of 100 ms behind a queue without bound, calls at random at 280 a second, of which
//! each waits a second for its answer and leaves its request behind. For ten seconds nothing gets
//! through, then all of it at once. Recovered is what succeeds 95 times of 100 for ten seconds.

use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};
use abate_core::policy::Policy;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{bucket, built, limited, mean, model, most, ms, open, plain, recovered, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Conduct, Fault, Guarding, Payment, Server, Trouble};

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E7", title: "a queue that retries keep full", runs: 19 * SEEDS, run };

const SEEDS: u64 = 30;
const TIMEOUT: Duration = s(1);
const PER_SECOND: f64 = 280.0;
const BEGINS: Duration = s(60);
const ENDS: Duration = s(70);
/// What has not recovered four minutes after the outage is taken never to; with little to spare it takes
/// longer.
const LENGTH: Duration = s(310);
const LONG: Duration = s(670);
const UNIT: &str = "s";

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let jitter = Backoff {
        base: ms(100),
        curve: Curve::Exponential { factor: 2.0 },
        cap: s(10),
        jitter: Jitter::Full,
    };
    let none = Backoff { jitter: Jitter::None, ..jitter };
    let paid = |payment| Conduct { payment, ..plain(4, Some(TIMEOUT), Backoff::NONE) };
    let mut lines = vec![
        recovers(crew, "one try", &plain(1, Some(TIMEOUT), Backoff::NONE), 123.0),
        stays(crew, "one retry", &plain(2, Some(TIMEOUT), Backoff::NONE), PER_SECOND),
        stays(crew, "one retry, jitter", &plain(2, Some(TIMEOUT), jitter), PER_SECOND),
        stays(crew, "three retries", &plain(4, Some(TIMEOUT), none), PER_SECOND),
        stays(crew, "three retries, jitter", &plain(4, Some(TIMEOUT), jitter), PER_SECOND),
        stays(crew, "a tenth of calls", &paid(bucket(false)), PER_SECOND),
        recovers(crew, "a tenth of successes", &paid(bucket(true)), 125.0),
    ];
    for (limit, seconds) in [(250, 43.0), (100, 5.0), (60, 2.0)] {
        lines.push(recovers(crew, &format!("limit {limit}"), &limited(4, TIMEOUT, limit), seconds));
    }
    let one = plain(2, Some(TIMEOUT), Backoff::NONE);
    for (sleep, seconds) in [(5, 2.0), (30, 21.0)] {
        let breaker = Guarding::Plain { failures: 10, sleep: s(sleep) };
        let guarded = Conduct { breaker, ..one.clone() };
        lines.push(recovers(crew, &format!("a breaker that sleeps {sleep} s"), &guarded, seconds));
    }
    let back = times(crew, &one, 1, 145.0).iter().flatten().count();
    lines.push(Line::at_least("one retry at 145/s: runs that recover", back as f64, SEEDS as f64));
    lines.push(stays(crew, "one retry at 150/s", &one, 150.0));
    lines.extend(ours(crew));
    lines
}

/// The default policy, and what it does with a timeout of one second.
fn ours(crew: &Crew<'_>) -> Vec<Line> {
    let stack = Conduct::stack(built(Policy::builder().with_attempt_timeout(TIMEOUT)));
    let mut lines = Vec::new();
    for processes in [1, 5, 20] {
        let times = times(crew, &stack, processes, PER_SECOND);
        let all = times.iter().copied().collect::<Option<Vec<_>>>();
        let name = format!("ours, {processes} processes");
        let got = all.as_ref().map(|times| mean(times.iter().copied()));
        lines.push(Line::at_most(format!("{name}: mean"), got, 7.0).in_units(UNIT));
        let got = all.map(most);
        lines.push(Line::at_most(format!("{name}: longest"), got, 12.0).in_units(UNIT));
    }
    let hundred = times(crew, &stack, 100, PER_SECOND).into_iter().collect::<Option<Vec<_>>>();
    lines.push(Line::reported("ours, 100 processes: mean", hundred.map(mean)).in_units(UNIT));
    let mut limit = limited(4, TIMEOUT, 60);
    limit.payment = Payment::Budget;
    let alone = times(crew, &limit, 1, PER_SECOND).into_iter().collect::<Option<Vec<_>>>();
    lines.push(
        Line::at_most("ours, limit 60 and no breaker: mean", alone.map(mean), 3.0).in_units(UNIT),
    );
    lines
}

fn recovers(crew: &Crew<'_>, name: &str, conduct: &Conduct, seconds: f64) -> Line {
    let times = times(crew, conduct, 1, PER_SECOND).into_iter().collect::<Option<Vec<_>>>();
    let got = times.map_or(f64::INFINITY, mean);
    Line::within(format!("{name}: recovery"), got, seconds, 0.15).in_units(UNIT)
}

fn stays(crew: &Crew<'_>, name: &str, conduct: &Conduct, per_second: f64) -> Line {
    let times = times(crew, conduct, 1, per_second);
    Line::never(format!("{name}: recovery"), times.into_iter().flatten().next()).in_units(UNIT)
}

/// How long after the outage each run has recovered.
fn times(crew: &Crew<'_>, conduct: &Conduct, processes: u32, per_second: f64) -> Vec<Option<f64>> {
    crew.each(SEEDS, |seed| {
        let mut group = open(per_second, conduct.clone());
        group.clients = processes;
        let mut server = Server::new(Law::Constant(ms(100)));
        server.workers = Some(30);
        let outage = Trouble { server: 0, from: BEGINS, to: ENDS, what: Fault::Hold };
        let length = if per_second < PER_SECOND { LONG } else { LENGTH };
        recovered(&crate::run(&model(length, group, server, vec![outage]), seed))
    })
}
