//! E5, backoff is not a budget: it moves retries, it takes none away.
//!
//! A hundred clients of ten calls a second each, three retries, and a way to the server and back that takes
//! 10 ms in the mean each. Where calls come whatever becomes of others, waits between attempts change
//! nothing: `(1 − p⁴)/(1 − p)` attempts a call with and without them. Where a client makes one call after
//! the other, the waits slow it down; each call of the few that are left is as many attempts as before.
//!
//! Of such a client the next call is due an exponential 100 ms after its last began, and waits for
//! that to end.

use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{mean, model, ms, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Model, Network, Rate, Server};
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E5", title: "backoff is not a budget", runs: 6 * SEEDS, run };

const SEEDS: u64 = 30;
const CLIENTS: u32 = 100;
const EVERY: Duration = ms(100);
const LENGTH: Duration = s(60);
const TOLERANCE: f64 = 0.03;
const SERIAL: Arrivals = Arrivals::Paced { every: Law::Exponential(EVERY) };
const DOUBLING: Backoff = Backoff {
    base: ms(100),
    curve: Curve::Exponential { factor: 2.0 },
    cap: s(10),
    jitter: Jitter::None,
};

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let open = Arrivals::Poisson(Rate::constant(f64::from(CLIENTS) / EVERY.as_secs_f64()));
    let mut lines = Vec::new();
    for (name, backoff, expected) in
        [("no wait", Backoff::NONE, 1.869), ("doubling from 100 ms", DOUBLING, 1.874)]
    {
        let runs = runs(crew, &open, 0.5, backoff);
        let got = mean(runs.iter().map(Run::amplification));
        let name = format!("open, p=0.5, {name}: attempts a call");
        lines.push(Line::within(name, got, expected, TOLERANCE));
    }
    for (p, attempts, calls) in
        [(0.1, 1008.0, 906.0), (0.3, 959.0, 676.0), (0.5, 797.0, 420.0), (0.75, 627.0, 229.0)]
    {
        let runs = runs(crew, &SERIAL, p, DOUBLING);
        let got = mean(runs.iter().map(|run| per_second(run.sent)));
        let name = format!("serial, p={p}");
        lines.push(
            Line::within(format!("{name}: attempts"), got, attempts, TOLERANCE)
                .in_units("attempts/s"),
        );
        let got = mean(runs.iter().map(|run| per_second(run.calls)));
        lines.push(
            Line::within(format!("{name}: calls"), got, calls, TOLERANCE).in_units("calls/s"),
        );
    }
    lines
}

fn runs(crew: &Crew<'_>, arrivals: &Arrivals, p: f64, backoff: Backoff) -> Vec<Run> {
    let world = world(arrivals.clone(), p, backoff);
    crew.each(SEEDS, |seed| crate::run(&world, seed))
}

fn world(arrivals: Arrivals, p: f64, backoff: Backoff) -> Model {
    let mut server = Server::new(Law::NOTHING);
    server.error_rate = p;
    let mut group = open(0.0, plain(4, None, backoff));
    group.clients = CLIENTS;
    group.arrivals = arrivals;
    group.network = Network { delay: Law::Exponential(ms(10)), loss: 0.0 };
    model(LENGTH, group, server, vec![])
}

fn per_second(count: u64) -> f64 {
    count as f64 / LENGTH.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_slow_a_serial_client_and_spare_no_attempt() {
        let p = 0.75;
        let run = crate::run(&world(SERIAL, p, DOUBLING), 1);
        let closed = (1.0 - libm::pow(p, 4.0)) / (1.0 - p);
        assert!((run.amplification() / closed - 1.0).abs() < 0.03, "{}", run.amplification());
        assert!(per_second(run.calls) < 300.0, "{}", run.calls);
    }
}
