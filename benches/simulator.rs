//! How fast the simulator runs, with the decisions that ship.
//!
//! ```text
//! cargo bench -p abate-benches --bench simulator -- --write docs/benchmarks.md
//! ```
//!
//! The shipped scenario `metastable` under each of its policies, twenty times as much traffic as it has;
//! and `herd` with a million jobs, each run in a process of its own, for the memory that it takes.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use abate_benches::report;
use abate_sim::scenario::{Scenario, shipped};
use clap::Parser;

/// The traffic of `metastable`, as a multiple of the shipped.
const TRAFFIC: f64 = 20.0;

/// What must hold.
const EVENTS_PER_SECOND: f64 = 4e6;
const HERD_SECONDS: f64 = 3.0;
const HERD_MEGABYTES: f64 = 250.0;

/// How fast the simulator runs.
#[derive(Debug, Parser)]
struct Args {
    /// Write the section of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Run this policy of this scenario alone, and print what it took.
    #[arg(long, hide = true, num_args = 2, value_names = ["SCENARIO", "POLICY"])]
    one: Option<Vec<String>>,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a run took.
struct Took {
    events: u64,
    seconds: f64,
    /// At the most; `None` where the system does not tell.
    megabytes: Option<f64>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some([scenario, policy]) = args.one.as_deref() {
        return one(scenario, policy);
    }
    let mut section = String::from("## The simulator\n\n");
    writeln!(section, "{}\n", report::machine())?;
    section.push_str(
        "Again: `cargo bench -p abate-benches --bench simulator -- --write docs/benchmarks.md`\n\n",
    );
    section.push_str("| scenario | policy | events | seconds | events a second | memory at the most |\n|---|---|---|---|---|---|\n");
    for name in ["metastable", "herd"] {
        for candidate in scenario(name)?.candidates {
            let took = in_a_process(name, &candidate.name)?;
            let held = match name {
                "herd" => {
                    took.seconds <= HERD_SECONDS
                        && took.megabytes.is_none_or(|it| it <= HERD_MEGABYTES)
                }
                _ => took.events as f64 / took.seconds >= EVENTS_PER_SECOND,
            };
            let what = if name == "herd" {
                "`herd`, a million jobs"
            } else {
                "`metastable`, 5,600 calls/s"
            };
            let line = format!(
                "| {what} | {} | {:.1} M | {:.2} | {:.1} M{} | {} |",
                candidate.name,
                took.events as f64 / 1e6,
                took.seconds,
                took.events as f64 / took.seconds / 1e6,
                if held { "" } else { ", **missed**" },
                took.megabytes.map_or_else(|| "–".to_owned(), |it| format!("{it:.0} MB")),
            );
            writeln!(io::stdout(), "{line}")?;
            writeln!(section, "{line}")?;
        }
    }
    let most = (EVENTS_PER_SECOND / 1e6, HERD_SECONDS, HERD_MEGABYTES);
    writeln!(
        section,
        "\nWhat must hold: {} M events a second; a million jobs in {} s and {} MB.",
        most.0, most.1, most.2
    )?;
    if let Some(path) = args.write {
        report::write_section(&path, "simulator", &section)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn scenario(name: &str) -> Result<Scenario> {
    let file = shipped(name).ok_or("no such scenario comes along")?;
    let file = file
        .replace("count = 100_000", "count = 1_000_000")
        .replace("workers = 30", "workers = 600");
    let scenario = Scenario::parse(name, file.as_bytes())?;
    Ok(if name == "metastable" { scenario.scaled(TRAFFIC, 1.0) } else { scenario })
}

/// Runs one, and prints events, seconds and megabytes.
fn one(name: &str, policy: &str) -> Result<ExitCode> {
    let scenario = scenario(name)?;
    let candidate = scenario.candidates.iter().find(|it| it.name == policy);
    let mut model = scenario.model(&candidate.ok_or("none of the scenario's policies")?.conduct);
    model.keeps_times = false;
    let start = Instant::now();
    let run = abate_sim::run(&model, 1);
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = peak_memory().map_or_else(|| "-".to_owned(), |it| it.to_string());
    writeln!(io::stdout(), "{} {seconds} {megabytes}", run.events)?;
    Ok(ExitCode::SUCCESS)
}

fn in_a_process(name: &str, policy: &str) -> Result<Took> {
    let output = Command::new(std::env::current_exe()?).args(["--one", name, policy]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let mut next = || words.next().ok_or("expected events, seconds and megabytes");
    Ok(Took {
        events: next()?.parse()?,
        seconds: next()?.parse()?,
        megabytes: next()?.parse().ok(),
    })
}

/// The most memory that this process has had, as Linux tells it.
fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes / 1e3)
}
