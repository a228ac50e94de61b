//! E10, a connection that is held while somebody else is asked: forty workers keep a connection of a pool of
//! fifty for all the 24 seconds that a call with its retries takes, and pages wait for theirs.
//!
//! Workers begin their next job when the last is done, so that `40 · 24/(24 + wait)` connections are theirs and
//! the web's demand has the rest: a wait of `960/(50 − demand) − 24` seconds where that is above 0. The 24
//! seconds are a mean: workers that all take the very same time fall into step, and have pages wait
//! twice as long.

use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::policy::{Policy, PolicyBuilder};

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{built, mean, most, ms, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Group, Model, Server};
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E10", title: "a connection held during a call", runs: 15 * SEEDS, run };

const SEEDS: u64 = 30;
const CONNECTIONS: u32 = 50;
const WORKERS: u32 = 40;
const HELD: Law = Law::Exponential(s(24));
/// What a page, or a job beside its call, does with a connection.
const WORK: Duration = ms(100);
/// The dependency's answers come a little later than anybody waits for them.
const ANSWERS: Law = Law::Constant(ms(3200));
const TIMEOUT: Duration = s(3);
const STEP: Duration = s(10);
/// The web's demand for connections in Erlang, and how long a page waits for one.
const DEMANDS: [(f64, f64); 3] = [(8.0, 0.0), (12.5, 1.6), (15.0, 3.4)];
/// What is 0 when it is told in tenths.
const NOTHING: f64 = 0.05;
const UNIT: &str = "s";

fn run(crew: &Crew<'_>) -> Vec<Line> {
    DEMANDS.into_iter().flat_map(|(demand, expected)| lines(crew, demand, expected)).collect()
}

fn lines(crew: &Crew<'_>, demand: f64, expected: f64) -> [Line; 5] {
    let runs = |pool: fn() -> Pool, length: Duration, since: Duration| {
        crew.each(SEEDS, |seed| waits(&crate::run(&pool().model(demand, length), seed), since))
    };
    let longest = |pool, length, since| most(runs(pool, length, since).into_iter().map(most));
    let name = |name| format!("web demand {demand}, {name}");
    let wait = mean(runs(held, s(600), s(300)).into_iter().map(median));
    let held = match expected {
        0.0 => Line::near(name("held"), wait, expected, NOTHING),
        _ => Line::within(name("held"), wait, expected, 0.10),
    };
    let nothing = |what, wait| Line::at_most(name(what), wait, NOTHING);
    [
        held,
        nothing("closed before the call", longest(closed, s(120), s(0))),
        nothing("split 40 and 10", longest(split, s(120), s(0))),
        nothing("ours, after 30 s", longest(ours, s(60), s(30))),
        nothing("ours without a wait for a turn", longest(ours_without_wait, s(60), s(0))),
    ]
    .map(|line| line.in_units(UNIT))
}

/// Who uses connections, beside the web.
struct Pool {
    jobs: Group,
    /// As whom jobs call while they hold a connection.
    call: Group,
    /// What the web has, and what jobs have if it is not the same.
    connections: (u32, u32),
}

fn held() -> Pool {
    Pool {
        jobs: Group { onward: Some(CALL), ..jobs(Law::NOTHING) },
        call: call(HELD_CALL, plain(1, None, Backoff::NONE)),
        connections: (CONNECTIONS, 0),
    }
}

fn closed() -> Pool {
    Pool { jobs: jobs(HELD), ..held() }
}

fn split() -> Pool {
    let pool = held();
    let jobs = Group { server: JOBS_OWN, ..pool.jobs };
    Pool { jobs, connections: (40, 10), ..pool }
}

fn ours() -> Pool {
    stack(Policy::builder())
}

fn ours_without_wait() -> Pool {
    stack(Policy::builder().with_concurrency_wait(Duration::ZERO))
}

fn stack(policy: PolicyBuilder) -> Pool {
    let policy = policy.with_attempt_timeout(TIMEOUT).with_concurrency(8);
    Pool { call: call(LATE, Conduct::stack(built(policy))), ..held() }
}

fn jobs(think: Law) -> Group {
    Group {
        clients: WORKERS,
        clients_per_process: WORKERS,
        arrivals: Arrivals::Serial { think },
        counts: false,
        ..open(0.0, plain(1, None, Backoff::NONE))
    }
}

fn call(server: usize, conduct: Conduct) -> Group {
    Group { arrivals: Arrivals::Never, server, counts: false, ..open(0.0, conduct) }
}

/// The numbers of servers, after the pool of all or of the web alone.
const JOBS_OWN: usize = 1;
const HELD_CALL: usize = 2;
const LATE: usize = 3;
/// The number of the group as which jobs call.
const CALL: usize = 2;

impl Pool {
    fn model(self, demand: f64, length: Duration) -> Model {
        let web = open(demand / WORK.as_secs_f64(), plain(1, None, Backoff::NONE));
        let connections = |number| {
            let mut pool = Server::new(Law::Constant(WORK));
            pool.workers = Some(number);
            pool
        };
        Model {
            length,
            step: STEP,
            groups: vec![web, self.jobs, self.call],
            servers: vec![
                connections(self.connections.0),
                connections(self.connections.1),
                Server::new(HELD),
                Server::new(ANSWERS),
            ],
            troubles: vec![],
            watched: 0,
            keeps_times: true,
        }
    }
}

/// How long pages waited for a connection in each step since `since`, in the median of pages.
fn waits(run: &Run, since: Duration) -> Vec<f64> {
    let since = since.div_duration_f64(STEP) as usize;
    let bins = run.bins.get(since..).unwrap_or_default();
    let medians = bins.iter().filter_map(|bin| bin.p50);
    medians.map(|p50| p50.saturating_sub(WORK).as_secs_f64()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_wait_while_jobs_hold_connections_and_not_when_they_do_not() {
        let longest = |pool: Pool| most(waits(&crate::run(&pool.model(15.0, s(40)), 0), s(10)));
        assert!(longest(held()) > 1.0);
        assert!(longest(closed()) < NOTHING);
    }
}
