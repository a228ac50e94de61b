//! E2, amplification and success against the probability that an attempt fails.
//!
//! Closed forms, for a probability `p` and three retries: attempts a call `(1 − p⁴)/(1 − p)`, success
//! `1 − p⁴`; with a bucket that a share `b` of every call fills, `min(demand, b)` retries a call, with one that
//! successes fill `b(1 − p)/(1 − b(1 − p))`, and the bucket's first content in either.

use std::time::Duration;

use abate_core::backoff::Backoff;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{bucket, mean, ms, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Payment, Server};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "E2",
    title: "attempts and success by the failure rate",
    runs: 8 * SEEDS,
    run,
};

const SEEDS: u64 = 30;
const CLIENTS: u32 = 100;
const PER_SECOND: f64 = 1000.0;
const LENGTH: Duration = s(60);
const TOLERANCE: f64 = 0.01;

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let cases = [
        (0.5, "one try", 1, Payment::Free, 1.0, 0.5),
        (0.5, "three retries", 4, Payment::Free, 1.871, 0.938),
        (0.5, "a tenth of calls", 4, bucket(false), 1.107, 0.553),
        (0.5, "a tenth of successes", 4, bucket(true), 1.060, 0.531),
        (1.0, "one try", 1, Payment::Free, 1.0, 0.0),
        (1.0, "three retries", 4, Payment::Free, 4.0, 0.0),
        (1.0, "a tenth of calls", 4, bucket(false), 1.107, 0.0),
        (1.0, "a tenth of successes", 4, bucket(true), 1.008, 0.0),
    ];
    let mut lines = Vec::new();
    for (p, name, attempts, payment, amplification, success) in cases {
        let runs = crew.each(SEEDS, |seed| {
            let mut conduct = plain(attempts, None, Backoff::NONE);
            conduct.payment = payment;
            let mut group = open(PER_SECOND, conduct);
            group.clients = CLIENTS;
            let mut server = Server::new(Law::Exponential(ms(10)));
            server.error_rate = p;
            let run = crate::run(&super::parts::model(LENGTH, group, server, vec![]), seed);
            (run.amplification(), run.success())
        });
        let got = mean(runs.iter().map(|run| run.0));
        lines.push(Line::near(
            format!("p={p}, {name}: attempts a call"),
            got,
            amplification,
            TOLERANCE,
        ));
        let got = mean(runs.iter().map(|run| run.1));
        lines.push(Line::near(format!("p={p}, {name}: success"), got, success, TOLERANCE));
    }
    lines
}
