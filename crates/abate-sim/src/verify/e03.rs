//! E3, the fleet effect: each process's own bucket starts full, and a thousand full buckets are no
//! bound at all.
//!
//! A hundred calls a second in total for a minute, all of which fail; buckets of five tokens that a tenth
//! of every call fills. With `n` buckets that is a tenth of calls and `5 n` tokens on top, less what is left in
//! them; with one for all, a tenth and next to nothing.
//!
//! For a thousand buckets 1.726 was published, which these parameters do not give: each process makes six
//! calls and has spent its five tokens after two of them. The simulator is held to what follows from
//! the law of those calls, 1.832, and the published figure is told beside it.

use std::time::Duration;

use abate_core::backoff::Backoff;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{bucket, mean, model, ms, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::Server;
use crate::record::Run;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E3", title: "budgets of many processes add up", runs: 7 * SEEDS, run };

const SEEDS: u64 = 30;
const PER_SECOND: f64 = 100.0;
const LENGTH: Duration = s(60);
const TOLERANCE: f64 = 0.01;
const CLIENTS: [(u32, f64); 2] = [(10, 1.108), (100, 1.172)];
const MANY: u32 = 1000;
const TOKENS: f64 = 5.0;
const RETRIES: u32 = 3;
/// More than a process of a thousand ever makes.
const MOST_CALLS: u32 = 60;
const SHARED: f64 = 1.10;
const LATER: &str = "comes with the fleet budget";

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for (clients, own) in CLIENTS.into_iter().chain([(MANY, by_law(MANY))]) {
        let got = amplification(crew, clients, 1);
        lines.push(Line::near(format!("a bucket each of {clients}"), got, own, TOLERANCE));
        let got = amplification(crew, clients, clients);
        lines.push(Line::near(format!("one bucket for {clients}"), got, SHARED, TOLERANCE));
    }
    let what = "a bucket each of 1000, published: 1.726";
    lines.push(Line::reported(what, amplification(crew, MANY, 1)));
    lines.push(Line::later("ours, 1 to 1,000,000 processes", LATER));
    lines.push(Line::later("ours, the store is down", LATER));
    lines
}

/// Attempts a call with a bucket each, by the law of how many calls a process makes (Poisson): the first
/// finds its bucket full, each other brings a tenth.
fn by_law(clients: u32) -> f64 {
    let calls = PER_SECOND * LENGTH.as_secs_f64() / f64::from(clients);
    let mut probability = libm::exp(-calls);
    let mut retries = 0.0;
    for k in 1..=MOST_CALLS {
        probability *= calls / f64::from(k);
        let tokens = libm::floor(TOKENS + f64::from(k - 1) / 10.0);
        retries += probability * tokens.min(f64::from(RETRIES * k));
    }
    1.0 + retries / calls
}

fn amplification(crew: &Crew<'_>, clients: u32, clients_per_process: u32) -> f64 {
    let run = |seed| outage(clients, clients_per_process, seed).amplification();
    mean(crew.each(SEEDS, run))
}

fn outage(clients: u32, clients_per_process: u32, seed: u64) -> Run {
    let mut conduct = plain(1 + RETRIES, None, Backoff::NONE);
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
    fn five_tokens_are_gone_after_two_of_six_calls() {
        assert!((by_law(MANY) - 1.832).abs() < 0.002, "{}", by_law(MANY));
    }

    #[test]
    fn one_bucket_grants_what_it_had_and_a_tenth_of_calls_but_the_first() {
        let run = outage(10, 10, 0);
        // The first call finds it full.
        assert_eq!(run.sent - run.calls, 5 + (run.calls - 1) / 10);
    }
}
