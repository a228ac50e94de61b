//! The report for people: a table, a chart over time, one sentence.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::load::Outcome;
use crate::tally::Plan;

const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns for the seconds: with names and phase marks a row stays within 100.
const COLUMNS: u32 = 84;

/// One row of figures per client.
#[must_use]
pub fn table(plan: &Plan, figures: &[Figures]) -> String {
    let mut text = String::from(
        "  client        calls  attempts  amplification  success  p50 ms  p99 ms  worst second  recovered in\n",
    );
    for row in figures {
        let recovered = row.recovery_s.map_or_else(
            || format!("not in {} s", plan.recovery),
            |seconds| format!("{seconds} s"),
        );
        let _ = writeln!(
            text,
            "  {:<12} {:>6}  {:>8}  {:>12.2}×  {:>5.1} %  {:>6.0}  {:>6.0}  {:>11.2}×  {recovered:>12}",
            row.name,
            row.calls,
            row.attempts,
            row.amplification,
            row.success * 100.0,
            row.p50_ms,
            row.p99_ms,
            row.worst_second,
        );
    }
    text
}

/// What came of the calls and what was sent for them, second by second.
#[must_use]
pub fn chart(plan: &Plan, outcomes: &[Outcome]) -> String {
    let goodput: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.name, outcome.tally.goodput())).collect();
    let attempts: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.name, outcome.tally.attempts())).collect();
    let busiest = attempts.iter().flat_map(|(_, seconds)| seconds).copied().max().unwrap_or(0);

    let mut text = String::new();
    let _ = writeln!(text, "  Calls answered in each second (█ = all {})", plan.rate);
    rows(&mut text, plan, &goodput, plan.rate);
    let _ = writeln!(text, "\n  Attempts sent in each second (█ = {busiest})");
    rows(&mut text, plan, &attempts, busiest);
    axis(&mut text, plan);
    text
}

/// In plain words what the figures show: the client that answered most calls beside the one that sent most attempts.
#[must_use]
pub fn verdict(plan: &Plan, figures: &[Figures]) -> Option<String> {
    let best = figures.iter().max_by(|a, b| a.success.total_cmp(&b.success))?;
    let loudest = figures.iter().max_by_key(|row| row.attempts)?;
    let fate = |row: &Figures| {
        let recovered = match row.recovery_s {
            Some(0) => String::from("recovered at once"),
            Some(seconds) => format!("recovered after {seconds} s"),
            None => format!("had not recovered after {} s", plan.recovery),
        };
        let percent = row.success * 100.0;
        format!(
            "  {} answered {percent:.0} % of its calls with {:.2} attempts each and {recovered}",
            row.name, row.amplification
        )
    };
    (best.name != loudest.name).then(|| {
        format!(
            "Under the same load and through the same {} s outage\n{},\n{}.",
            plan.outage,
            fate(best),
            fate(loudest),
        )
    })
}

fn rows(text: &mut String, plan: &Plan, clients: &[(&str, Vec<u32>)], full: u32) {
    let width = width(plan);
    let phases = [0..plan.health, plan.health..plan.release(), plan.release()..plan.end()];
    for (name, seconds) in clients {
        let row = phases.clone().map(|phase| {
            let phase = seconds.get(phase.start as usize..phase.end as usize).unwrap_or_default();
            phase
                .iter()
                .map(|&count| block(count, full).to_string().repeat(width))
                .collect::<String>()
        });
        let _ = writeln!(text, "  {name:<13}{}", row.join("│"));
    }
}

/// The seconds at which the phases begin and end, under their names.
fn axis(text: &mut String, plan: &Plan) {
    let columns = |seconds: u32| seconds as usize * width(plan);
    let (health, outage) = (columns(plan.health), columns(plan.outage));
    let _ = writeln!(text, "  {:13}{:<health$}│{:<outage$}│recovery", "", "health", "outage");
    let seconds = |seconds: u32| format!("{seconds} s");
    let (begin, fall, release, end) =
        (seconds(0), seconds(plan.health), seconds(plan.release()), seconds(plan.end()));
    let rest = columns(plan.recovery).saturating_sub(release.len());
    let _ = writeln!(text, "  {:13}{begin:<health$} {fall:<outage$} {release}{end:>rest$}", "");
}

fn block(count: u32, full: u32) -> char {
    // Rounded up: a second with a single answer is not an empty one.
    let eighths = (count * 8).div_ceil(full.max(1)).min(8);
    BLOCKS.get(eighths as usize).copied().unwrap_or(' ')
}

/// Columns for each second; a run that is too long for the screen gets its one column all the same.
fn width(plan: &Plan) -> usize {
    (COLUMNS / plan.end()).max(1) as usize
}
