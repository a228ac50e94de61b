use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path as File;

use serde::Deserialize;
use tower::BoxError;

use super::counts::{Counts, counts, say};
use super::scenario::{Path, Scenario, Subject};
use super::targets::INSTRUCTIONS;
use crate::report::compiler;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gate.toml");
const RECORD: &str = "cargo bench -p abate-benches --bench overhead -- --record";

/// Instructions may grow by a twentieth, or by this many: what another link order makes of them.
const SLACK: i64 = 30;

/// What the stack is gated on, besides each layer alone.
const OF_THE_STACK: [Path; 7] = [
    Path::Ready,
    Path::ReadyHeaders,
    Path::Pending,
    Path::Unrepeatable,
    Path::BreakerOpen,
    Path::LimitFull,
    Path::OneRetry,
];

#[derive(Deserialize)]
struct Recorded {
    compiler: String,
    figures: BTreeMap<String, Figures>,
}

#[derive(Deserialize)]
struct Figures {
    instructions: i64,
    allocations_of_100_calls: i64,
}

/// Holds what is measured against what was recorded.
///
/// # Errors
///
/// When a figure has grown, or when under `CI=true` there is nothing to compare with.
pub fn check() -> Result<(), BoxError> {
    let recorded: Recorded = toml::from_str(&fs::read_to_string(FILE)?)?;
    let in_ci = std::env::var("CI").is_ok_and(|it| it == "true");
    let same = recorded.compiler == made_by();
    if !same {
        let other = format!(
            "the figures are of {}, this is {}: instructions of two compilers say nothing about \
             each other. Check with the recorded one, or record with this: {RECORD}",
            recorded.compiler,
            made_by()
        );
        if in_ci {
            return Err(other.into());
        }
        say(&other);
    }
    let measured = counts(&gated())?;
    if measured.is_empty() && in_ci {
        return Err("nothing is counted without valgrind: apt-get install valgrind".into());
    }
    limits(&measured);
    if !same {
        return Ok(());
    }
    let mut grown = String::new();
    for (scenario, counts) in measured {
        let Some(figures) = recorded.figures.get(&scenario.to_string()) else {
            writeln!(grown, "{scenario}: not recorded, measured {}", counts.show())?;
            continue;
        };
        compare(&mut grown, scenario, figures, counts)?;
    }
    if grown.is_empty() {
        say("all within what was recorded");
        return Ok(());
    }
    Err(format!("grown:\n{grown}If that is meant: {RECORD}").into())
}

/// Writes down what is measured.
///
/// # Errors
///
/// When it cannot be measured or written.
pub fn record() -> Result<(), BoxError> {
    let mut text =
        format!("# Beyond the bare client: {RECORD}\ncompiler = \"{}\"\n\n[figures]\n", made_by());
    let measured = counts(&gated())?;
    if measured.is_empty() {
        return Err("nothing to record".into());
    }
    for (scenario, counts) in measured {
        let Counts { instructions, allocations } = counts;
        writeln!(
            text,
            "\"{scenario}\" = {{ instructions = {instructions}, allocations_of_100_calls = {allocations} }}"
        )?;
    }
    fs::write(FILE, text)?;
    say(&format!("recorded in {}", File::new(FILE).display()));
    Ok(())
}

fn gated() -> Vec<Scenario> {
    let stack = OF_THE_STACK.iter().map(|path| Scenario::new(Subject::Stack, *path));
    let layers = Subject::LAYERS.iter().map(|it| Scenario::new(*it, Path::Ready));
    let post = Scenario::new(Subject::Retry, Path::Unrepeatable);
    stack.chain(layers).chain([post]).collect()
}

fn compare(
    grown: &mut String,
    scenario: Scenario,
    recorded: &Figures,
    measured: Counts,
) -> std::fmt::Result {
    let was = recorded.instructions;
    let slack = SLACK.max(was / 20);
    let now = measured.instructions;
    if now > was + slack {
        writeln!(
            grown,
            "{scenario}: recorded {was} instr, measured {now}: {} more, with a slack of {slack}",
            now - was
        )?;
    } else if now < was - slack {
        say(&format!("{scenario}: fell from {was} to {now} instr; keep it: {RECORD}"));
    }
    let (was, now) = (recorded.allocations_of_100_calls, measured.allocations);
    if now > was {
        writeln!(grown, "{scenario}: recorded {was} allocations in 100 calls, measured {now}")?;
    } else if now < was {
        say(&format!("{scenario}: fell from {was} to {now} allocations; keep it: {RECORD}"));
    }
    Ok(())
}

/// What must hold whatever was recorded: told, and not a failure here.
fn limits(measured: &BTreeMap<Scenario, Counts>) {
    for (subject, path, at_most, goal) in INSTRUCTIONS {
        let scenario = Scenario::new(subject, path);
        if let Some(Counts { instructions: now, .. }) = measured.get(&scenario) {
            let verdict = if *now <= at_most { "held" } else { "MISSED" };
            say(&format!("must hold: {scenario} <= {at_most} (goal {goal}): {now}, {verdict}"));
        }
    }
}

/// Instructions are those of a compiler for one processor.
fn made_by() -> String {
    format!("{} for {}", compiler(), std::env::consts::ARCH)
}
