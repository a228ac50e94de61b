//! The same model and seed come to the same run: from run to run, in debug and in release, on every
//! machine, and whatever is asked for besides.
//!
//! `golden.txt` has the trace of each policy of each scenario that comes along, shortened. Who changes a
//! decision, a default or the engine changes these, and has them written again:
//!
//! ```text
//! ABATE_GOLDEN=renew cargo test -p abate-sim --test golden
//! ```
//!
//! The difference of the file then says what became of each policy.

use std::fmt::Write;
use std::time::Duration;

use abate_sim::model::Model;
use abate_sim::record::Run;
use abate_sim::scenario::{Scenario, shipped, shipped_names};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");

const SEED: u64 = 7;

/// What has a rate of calls is cut here: trouble has begun, and ended where it is short.
const LENGTH: Duration = Duration::from_secs(80);

/// What makes one call a client is not; enough of them for a queue of 2,000 to overflow.
const MOST_CLIENTS: u32 = 2_500;

/// Every policy of every scenario, with their names.
fn models() -> Vec<(&'static str, String, Model)> {
    let scenarios = shipped_names().filter_map(|name| {
        let scenario = Scenario::parse(name, shipped(name)?.as_bytes()).ok()?;
        Some((name, scenario))
    });
    let models = scenarios.flat_map(|(name, scenario)| {
        let candidates = scenario.candidates.iter();
        let models = candidates.map(|candidate| {
            (name, candidate.name.clone(), shortened(scenario.model(&candidate.conduct)))
        });
        models.collect::<Vec<_>>()
    });
    models.collect()
}

fn shortened(mut model: Model) -> Model {
    let herd = model.groups.iter().any(|group| group.clients > MOST_CLIENTS);
    if !herd {
        model.length = model.length.min(LENGTH);
    }
    for group in &mut model.groups {
        group.clients = group.clients.min(MOST_CLIENTS);
    }
    model
}

fn line(scenario: &str, policy: &str, run: &Run) -> String {
    let Run { calls, sent, succeeded, trace, .. } = run;
    format!("{scenario:<16} {policy:<28} {calls:>7} {sent:>8} {succeeded:>9}  {trace:016x}\n")
}

#[test]
fn each_scenario_that_ships_runs_as_it_is_written_down() {
    let mut table = format!(
        "{:<16} {:<28} {:>7} {:>8} {:>9}  {}\n",
        "scenario", "policy", "calls", "attempts", "successes", "trace"
    );
    for (scenario, policy, model) in models() {
        let run = abate_sim::run(&model, SEED);
        write!(table, "{}", line(scenario, &policy, &run)).unwrap();
    }
    if std::env::var("ABATE_GOLDEN").is_ok_and(|it| it == "renew") {
        std::fs::write(FILE, &table).unwrap();
    }
    let golden = std::fs::read_to_string(FILE).unwrap();
    let pairs = golden.lines().zip(table.lines()).filter(|(old, new)| old != new);
    let changed: String = pairs.map(|(old, new)| format!("- {old}\n+ {new}\n")).collect();
    assert!(golden == table, "the head of this file says how to renew these:\n{changed}");
}

#[test]
fn a_trace_is_the_same_whatever_else_is_asked_for() {
    for (scenario, policy, mut model) in models() {
        if model.length > LENGTH || policy != "abate's default" {
            continue;
        }
        model.length = Duration::from_secs(65);
        let plain = abate_sim::run(&model, SEED).trace;
        let mut steps = 0;
        let watched = abate_sim::run_watched(&model, SEED, &mut |_| steps += 1);
        assert_eq!(watched.trace, plain, "watched: {scenario}");
        assert_eq!(steps, watched.bins.len());
        let (traced, happenings) = abate_sim::run_traced(&model, SEED);
        assert_eq!(traced.trace, plain, "traced: {scenario}");
        assert!(happenings.len() as u64 > traced.calls);
        model.keeps_times = !model.keeps_times;
        model.step = Duration::from_millis(330);
        let other = abate_sim::run(&model, SEED).trace;
        assert_eq!(other, plain, "by other steps, without times: {scenario}");
        assert_ne!(abate_sim::run(&model, SEED + 1).trace, plain, "another seed: {scenario}");
    }
}
