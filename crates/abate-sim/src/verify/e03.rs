//! E3, the fleet effect: each process's own bucket starts full, and a thousand full buckets are no
//! bound at all.
//!
//! A hundred calls a second in total for a minute, all of which fail; buckets of five tokens that a tenth
//! of every call fills. With `n` buckets that is a tenth of calls and `5 n` tokens on top, less what is left in
//! them; with one for all, a tenth and next to nothing.

use std::time::Duration;

use abate_core::backoff::Backoff;

use super::parts::{bucket, mean, model, ms, open, plain, s};
use super::{Crew, Experiment, Line};
use crate::law::Law;
use crate::model::Server;
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E3", title: "budgets of many processes add up", runs: 6 * SEEDS, run };

const SEEDS: u64 = 30;
const PER_SECOND: f64 = 100.0;
const LENGTH: Duration = s(60);
const TOLERANCE: f64 = 0.01;
const CLIENTS: [(u32, f64); 3] = [(10, 1.108), (100, 1.172), (1000, 1.726)];
const SHARED: f64 = 1.10;
const LATER: &str = "comes with the fleet budget";

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (clients, own) in CLIENTS {
        let got = amplification(crew, clients, 1);
        lines.push(Line::near(format!("a bucket each of {clients}"), got, own, TOLERANCE));
        let got = amplification(crew, clients, clients);
        lines.push(Line::near(format!("one bucket for {clients}"), got, SHARED, TOLERANCE));
    }
    lines.push(Line::later("ours, 1 to 1,000,000 processes", LATER));
    lines.push(Line::later("ours, the store is down", LATER));
    lines
}

fn amplification(crew: &Crew<'_>, clients: u32, clients_per_process: u32) -> f64 {
    let run = |seed| outage(clients, clients_per_process, seed).amplification();
    mean(crew.each(SEEDS, run))
}

fn outage(clients: u32, clients_per_process: u32, seed: u64) -> Run {
    let mut conduct = plain(4, None, Backoff::NONE);
    conduct.payment = bucket(false);
    let mut group = open(PER_SECOND, conduct);
    group.clients = clients;
    group.clients_per_process = clients_per_process;
    let mut server = Server::new(Law::Exponential(ms(10)));
    server.error_rate = 1.0;
    crate::run(&model(LENGTH, group, server, vec![]), seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bucket_grants_what_it_had_and_a_tenth_of_calls_but_the_first() {
        let run = outage(10, 10, 0);
        // The first call finds it full.
        assert_eq!(run.sent - run.calls, 5 + (run.calls - 1) / 10);
    }
}
