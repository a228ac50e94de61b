//! `abate verify`: published experiments, run again.

use std::io::Write;

use abate_core::config::source::nearest;
use abate_sim::Crew;
use abate_sim::verify::{EXPERIMENTS, Experiment, Line, Verdict};

use crate::exit::{Failure, Outcome};
use crate::progress::Progress;

mod finding;
mod json;
mod page;

use self::finding::Finding;

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
    Ok(outcome(findings.iter().flat_map(|finding| &finding.lines)))
}

fn outcome<'a>(mut lines: impl Iterator<Item = &'a Line>) -> Outcome {
    if lines.any(|line| line.verdict() == Verdict::Missed) {
        Outcome::Missed
    } else {
        Outcome::Fine
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use abate_sim::verify::Expected;

    fn line(got: f64, expected: Expected) -> Line {
        Line { what: "retries".to_owned(), got: Some(got), expected, unit: "" }
    }

    #[test]
    fn one_missed_figure_among_those_that_hold_is_told_to_the_shell() {
        let (holds, missed) = (Expected::AtMost(2.0), Expected::AtLeast(2.0));
        let mut lines = vec![line(1.0, holds), line(1.0, Expected::Reported)];
        assert_eq!(outcome(lines.iter()), Outcome::Fine);
        lines.insert(1, line(1.0, missed));
        assert_eq!(outcome(lines.iter()), Outcome::Missed);
    }

    #[test]
    fn what_comes_later_is_no_miss() {
        let later = Line { got: None, ..line(0.0, Expected::Later("comes with the fleet")) };
        assert_eq!(outcome([later].iter()), Outcome::Fine);
        assert_eq!(outcome([].iter()), Outcome::Fine);
    }
}
