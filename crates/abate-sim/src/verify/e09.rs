//! E9, a herd of jobs: a hundred thousand fail at one moment, and come back by the schedules of job
//! queues.

use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{ms, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Fault, Group, Model, Network, Server, Trouble};
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E9", title: "a herd of jobs after five minutes of outage", runs: 6, run };

const JOBS: u32 = 100_000;
const OUTAGE: Duration = s(300);
/// Longer than any schedule here.
const LENGTH: Duration = s(40 * 24 * 60 * 60);

struct Case {
    name: &'static str,
    backoff: Backoff,
    calls: f64,
    peak: f64,
    dead: Option<f64>,
    done: Done,
}

enum Done {
    Never,
    All(f64),
    Of99(f64),
}

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let cases = cases();
    let runs = crew.each(cases.len() as u64, |case| {
        cases.get(case as usize).map(|case| crate::run(&herd(case.backoff, JOBS), 0))
    });
    let mut lines: Vec<_> = cases
        .iter()
        .zip(runs.into_iter().flatten())
        .flat_map(|(case, run)| case.lines(&run))
        .collect();
    lines.push(Line::later("ours, shared breaker and pace", "comes with queue workers"));
    lines
}

fn cases() -> [Case; 6] {
    let every = |seconds, jitter| Backoff {
        base: s(seconds),
        curve: Curve::Fixed,
        cap: s(seconds),
        jitter,
    };
    let days = s(7 * 24 * 60 * 60);
    [
        Case {
            name: "every 30 s",
            backoff: every(30, Jitter::None),
            calls: 24.7,
            peak: 100_000.0,
            dead: Some(82_400.0),
            done: Done::Never,
        },
        Case {
            name: "Sidekiq without jitter",
            backoff: Backoff { jitter: Jitter::None, ..Backoff::SIDEKIQ },
            calls: 23.7,
            peak: 100_000.0,
            dead: Some(76_900.0),
            done: Done::Never,
        },
        Case {
            name: "Sidekiq, legacy jitter",
            backoff: Backoff::SIDEKIQ_LEGACY,
            calls: 5.47,
            peak: 4146.0,
            dead: Some(0.0),
            done: Done::All(715.0),
        },
        Case {
            name: "Sidekiq, today's jitter",
            backoff: Backoff::SIDEKIQ,
            calls: 6.24,
            peak: 10_173.0,
            dead: Some(0.0),
            done: Done::All(1224.0),
        },
        Case {
            name: "full jitter over Sidekiq's curve",
            backoff: Backoff { jitter: Jitter::Full, ..Backoff::SIDEKIQ },
            calls: 6.97,
            peak: 14_108.0,
            dead: Some(0.0),
            done: Done::Of99(1497.0),
        },
        Case {
            name: "decorrelated from 15 s",
            backoff: Backoff {
                cap: days,
                jitter: Jitter::Decorrelated,
                ..every(15, Jitter::Decorrelated)
            },
            calls: 6.23,
            peak: 4345.0,
            dead: Some(0.0),
            done: Done::All(890.0),
        },
    ]
}

/// All jobs at once, each tried 26 times at the most.
fn herd(backoff: Backoff, jobs: u32) -> Model {
    let mut server = Server::new(Law::Constant(ms(100)));
    server.workers = Some(100);
    server.queue = Some(1000);
    let group = Group {
        clients: jobs,
        clients_per_process: jobs,
        arrivals: Arrivals::Batch { at: Duration::ZERO },
        conduct: plain(26, None, backoff),
        server: 0,
        network: Network::INSTANT,
        onward: None,
        counts: true,
        cancels: false,
    };
    let what = Fault::Down { status: 500 };
    let outage = Trouble { server: 0, from: Duration::ZERO, to: OUTAGE, what };
    super::parts::model(LENGTH, group, server, vec![outage])
}

impl Case {
    fn lines(&self, run: &Run) -> Vec<Line> {
        let name = self.name;
        // The first second is the failure itself, of all of them.
        let sent = run.bins.iter().skip(1).map(|bin| bin.first + bin.retries);
        let peak = f64::from(sent.max().unwrap_or(0));
        let mut lines = vec![
            Line::within(format!("{name}: calls a job"), run.amplification(), self.calls, 0.02),
            Line::within(format!("{name}: peak"), peak, self.peak, 0.05).in_units("calls/s"),
        ];
        if let Some(dead) = self.dead {
            lines.push(Line::within(format!("{name}: dead"), run.failed as f64, dead, 0.02));
        }
        lines.push(match self.done {
            Done::Never => Line::never(format!("{name}: all done"), done(run, 1.0)).in_units("s"),
            Done::All(seconds) => {
                let got = done(run, 1.0).unwrap_or(f64::INFINITY);
                Line::within(format!("{name}: all done"), got, seconds, 0.1).in_units("s")
            }
            Done::Of99(seconds) => {
                let got = done(run, 0.99).unwrap_or(f64::INFINITY);
                Line::within(format!("{name}: 99 % done"), got, seconds, 0.1).in_units("s")
            }
        });
        lines
    }
}

/// When this share of the jobs has succeeded.
fn done(run: &Run, share: f64) -> Option<f64> {
    let mut done = 0_u64;
    let enough = run.bins.iter().position(|bin| {
        done += u64::from(bin.succeeded);
        done as f64 >= share * run.calls as f64
    });
    enough.map(|second| second as f64 + 1.0)
}
