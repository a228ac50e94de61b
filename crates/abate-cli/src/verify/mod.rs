//! `abate verify`: published experiments, run again.

use std::io::Write;

use abate_core::config::source::nearest;
use abate_sim::Crew;
use abate_sim::verify::{EXPERIMENTS, Experiment, Line, Verdict};

use crate::exit::{Failure, Outcome};
use crate::progress::Progress;

mod json;
mod page;

const EXAMPLES: &str = "\
Examples:
  abate verify
  abate verify E7 E9
  abate verify --json | jq '.experiments[].lines[] | select(.verdict == \"missed\")'

Exit codes:
  0  every figure holds
  1  a figure was missed
  2  bad input or usage";

/// Runs published experiments again, and says which figures hold.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The experiments, such as E7; all of them unless given.
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,

    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What an experiment came to.
struct Finding {
    experiment: &'static Experiment,
    lines: Vec<Line>,
}

/// Runs what `args` ask for.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome, Failure> {
    let chosen = chosen(&args.experiments)?;
    let progress = Progress::new(chosen.iter().map(|experiment| experiment.runs).sum());
    let after_run = || progress.step();
    let crew = Crew::new(&after_run);
    let mut findings = Vec::new();
    let mut done = 0;
    for experiment in chosen {
        progress.say(format!("{} {}", experiment.id, experiment.title));
        let finding = Finding { experiment, lines: experiment.run(&crew) };
        done += experiment.runs;
        progress.stand_at(done);
        if !args.json {
            progress.aside(|| page::print(&finding, out))?;
        }
        findings.push(finding);
    }
    drop(progress);
    if args.json {
        writeln!(out, "{:#}", json::document(&findings))?;
    } else {
        page::sum_up(&findings, out)?;
    }
    let missed = findings.iter().flat_map(|finding| &finding.lines);
    let missed = missed.filter(|line| line.verdict() == Verdict::Missed).count();
    Ok(if missed == 0 { Outcome::Fine } else { Outcome::Missed })
}

fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    let known = || EXPERIMENTS.iter().map(|experiment| experiment.id);
    let find = |name: &String| {
        let found = EXPERIMENTS.iter().find(|it| it.id.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let meant = match nearest(&name.to_uppercase(), known()) {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
            };
            Failure::Input(format!("there is no experiment `{name}`; {meant}"))
        })
    };
    if names.is_empty() {
        return Ok(EXPERIMENTS.iter().collect());
    }
    names.iter().map(find).collect()
}
