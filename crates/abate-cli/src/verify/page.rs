//! Findings for people.

use std::io::{self, Write};

use abate_sim::verify::{Expected, Line, Verdict};

use super::finding::Finding;
use crate::figures;
use crate::terminal::{ASIDE, ERROR, GOOD, TITLE};

/// Longer names than this, such as that of a storm that breaks a rule, widen no column.
const WIDEST: usize = 60;

/// The figures of an experiment, a line each.
pub(super) fn print(finding: &Finding, out: &mut impl Write) -> io::Result<()> {
    let experiment = finding.experiment;
    writeln!(out, "{TITLE}{} {}{TITLE:#}", experiment.id, experiment.title)?;
    let rows = finding.lines.iter().map(|line| [expected(line), got(line), tolerance(line)]);
    let rows: Vec<_> = rows.collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (first, second, third) = (width(0), width(1), width(2));
    let what = finding.lines.iter().map(|line| line.what.chars().count()).max().unwrap_or(0);
    let what = what.min(WIDEST);
    for (line, [expected, got, tolerance]) in finding.lines.iter().zip(&rows) {
        let verdict = match line.verdict() {
            Verdict::Holds => format!("{GOOD}holds{GOOD:#}"),
            Verdict::Missed => format!("{ERROR}MISSED{ERROR:#}"),
            Verdict::Told => format!("{ASIDE}–{ASIDE:#}"),
        };
        let row = format!(
            "  {:<what$}  expected {expected:>first$}  got {got:>second$}  {tolerance:<third$}  {verdict}",
            line.what
        );
        writeln!(out, "{row}")?;
    }
    writeln!(out)
}

/// How many figures hold.
pub(super) fn sum_up(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    let count = |verdict| {
        let lines = findings.iter().flat_map(|finding| &finding.lines);
        lines.filter(|line| line.verdict() == verdict).count()
    };
    let (holds, missed, told) =
        (count(Verdict::Holds), count(Verdict::Missed), count(Verdict::Told));
    let style = if missed == 0 { GOOD } else { ERROR };
    writeln!(
        out,
        "{style}{holds} figures hold, {missed} missed{style:#}, {told} told without a judgement"
    )
}

fn expected(line: &Line) -> String {
    match line.expected {
        Expected::Near { value, .. } => unit(value, line),
        Expected::AtMost(most) => format!("≤ {}", unit(most, line)),
        Expected::AtLeast(least) => format!("≥ {}", unit(least, line)),
        Expected::Never => "never".to_owned(),
        Expected::Later(_) => "later".to_owned(),
        _ => "–".to_owned(),
    }
}

fn got(line: &Line) -> String {
    match (line.expected, line.got) {
        (_, Some(got)) => unit(got, line),
        (Expected::Never, None) => "never".to_owned(),
        (_, None) => "–".to_owned(),
    }
}

fn tolerance(line: &Line) -> String {
    match line.expected {
        Expected::Near { tolerance, .. } => format!("± {}", figures::number(tolerance)),
        Expected::Later(why) => why.to_owned(),
        _ => String::new(),
    }
}

fn unit(value: f64, line: &Line) -> String {
    let number = match value {
        _ if !value.is_finite() => return "never".to_owned(),
        small if small.abs() < 10.0 => format!("{small:.3}"),
        large => figures::number(large),
    };
    if line.unit.is_empty() { number } else { format!("{number} {}", line.unit) }
}
