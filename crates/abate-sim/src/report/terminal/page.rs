//! The report as lines of text.

use super::super::comparison::Comparison;
use super::super::figures::{Figures, attempts, bins, length};
use super::super::number::{duration, percent, rate, ratio, short};
use super::super::verdict::verdict;
use super::chart::{GUTTER, axis, goodput, stacked, times};
use super::columns::columns;
use super::line::{BOLD, FAINT, FIRST, Line, PLAIN, RETRIES, SUCCEEDED, clean};
use crate::record::Run;
use std::time::Duration;
use textwrap::{Options, WordSeparator, WordSplitter, wrap};

/// With fewer columns than that a chart shows nothing.
const NARROWEST: usize = 8;

/// The comparison as text: for each policy its attempts and what comes of them over time, and at the
/// end the verdict. No line is wider than `width` columns; without `colours` there are no escape
/// sequences, and retries are hatched.
#[must_use]
pub fn terminal(comparison: &Comparison, width: usize, colours: bool) -> String {
    let runs = &comparison.runs;
    let seconds = runs.iter().map(length).fold(0.0, f64::max);
    let most = runs.iter().map(busiest).fold(0.0, f64::max);
    let mut lines = Vec::new();
    lines.extend(wrapped(&comparison.title, width).map(|line| Line::default().and(BOLD, line)));
    lines.extend(wrapped(&comparison.scenario, width).map(|line| Line::default().and(PLAIN, line)));
    for run in runs {
        lines.push(Line::default());
        lines.push(Line::default().and(BOLD, clean(&run.name)));
        lines.extend(charts(run, seconds, most, width, colours));
    }
    lines.push(Line::default());
    let verdict = format!("{}.", verdict(comparison));
    lines.extend(wrapped(&verdict, width).map(|line| Line::default().and(BOLD, line)));
    let lines = lines.iter().map(|line| line.render(width, colours) + "\n");
    lines.collect()
}

fn charts(run: &Run, seconds: f64, most: f64, width: usize, colours: bool) -> Vec<Line> {
    let room = width.saturating_sub(GUTTER);
    if room < NARROWEST || bins(run).is_empty() {
        return vec![Line::default().and(FAINT, "no chart")];
    }
    let columns = columns(run, seconds, room);
    let mut lines = vec![attempts_told(run, colours)];
    lines.extend(stacked(&columns, if most > 0.0 { most } else { 1.0 }, short, colours));
    lines.push(
        Line::default()
            .and(SUCCEEDED, "█")
            .and(PLAIN, format!(" calls that succeed: {}", percent(run.success()))),
    );
    lines.push(goodput(&columns));
    lines.push(axis(&columns));
    let end = Duration::try_from_secs_f64(seconds).map_or_else(|_| "–".to_owned(), duration);
    lines.push(times(run, seconds, room, &end));
    lines
}

fn attempts_told(run: &Run, colours: bool) -> Line {
    let figures = Figures::of(run);
    let mut peak = format!("  attempts, peak {}/s", rate(figures.peak));
    if let Some(capacity) = figures.capacity {
        peak += &format!(" = {} × capacity", ratio(figures.peak / capacity));
    }
    let retries = if colours { "█" } else { "░" };
    Line::default()
        .and(FIRST, "█")
        .and(PLAIN, " first tries  ")
        .and(RETRIES, retries)
        .and(PLAIN, " retries")
        .and(FAINT, peak)
}

fn busiest(run: &Run) -> f64 {
    let step = run.step.as_secs_f64();
    bins(run).iter().map(attempts).max().map_or(0.0, |attempts| attempts as f64 / step)
}

/// The text in lines of at most `width`.
fn wrapped(text: &str, width: usize) -> impl Iterator<Item = String> + use<> {
    let options = Options::new(width.max(1))
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation);
    let text = clean(text);
    let lines = if text.is_empty() { Vec::new() } else { wrap(&text, options) };
    lines.into_iter().map(|line| line.into_owned()).collect::<Vec<_>>().into_iter()
}
