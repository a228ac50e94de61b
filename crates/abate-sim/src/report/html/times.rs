//! How soon calls succeed: all policies in one plot.

use super::super::number::{duration, percent};
use super::panels::View;
use super::section::Section;
use super::svg::{HEIGHT, Plot, Scale, Tick, WIDTH};
use crate::record::Run;
use maud::html;
use std::fmt::Write as _;
use std::time::Duration;

/// Points along the time axis.
const POINTS: u32 = 300;

/// Colours and dashes that there are: more policies than that share them.
const STYLES: [&str; 6] = [
    "line policy-1",
    "line policy-2",
    "line policy-3",
    "line policy-4",
    "line policy-5",
    "line policy-6",
];

/// The share of calls that have succeeded within a time; none unless the times were recorded.
pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let runs: Vec<_> =
        view.runs().map(|(run, _)| run).filter(|run| !run.times_to_success.is_empty()).collect();
    let ends = runs.iter().flat_map(|run| {
        run.times_to_success.first().into_iter().chain(run.times_to_success.last())
    });
    let time = Scale::decades(ends.map(Duration::as_secs_f64))?;
    let share = Scale::linear(1.0);
    let plot = Plot {
        height: 240,
        title: "Share of calls that have succeeded, over the time since they began".to_owned(),
        description: runs.iter().map(|run| described(run)).collect::<Vec<_>>().join(" "),
        across: time
            .ticks(6)
            .into_iter()
            .map(|s| Tick { at: time.place(s), label: told(s) })
            .collect(),
        up: share.ticks(5).into_iter().map(|v| Tick { at: v, label: percent(v) }).collect(),
        shades: Vec::new(),
    };
    let styles = || STYLES.into_iter().cycle();
    let marks = html! {
        @for (run, style) in runs.iter().zip(styles()) { path class=(style) d=(curve(run, &time)) {} }
    };
    Some(Section {
        title: "Time to success",
        about: "The share of all calls that have succeeded so long after they began. Where a curve ends below 100\u{a0}%, the rest failed.",
        legend: styles().zip(&runs).map(|(style, run)| (style, run.name.clone())).collect(),
        body: html! { figure { (plot.draw(&marks, &html! {})) } },
    })
}

/// The `d` of the curve of one run.
fn curve(run: &Run, time: &Scale) -> String {
    let mut d = String::new();
    for point in 0..=POINTS {
        let at = f64::from(point) / f64::from(POINTS);
        let y = (1.0 - succeeded_within(run, time.value(at))) * HEIGHT;
        // Writing to a String does not fail.
        let _ = write!(d, "{}{:.0} {y:.0}", if point == 0 { 'M' } else { 'L' }, at * WIDTH);
    }
    d
}

/// The share of calls that have succeeded `seconds` after they began.
fn succeeded_within(run: &Run, seconds: f64) -> f64 {
    let within = run.times_to_success.partition_point(|time| time.as_secs_f64() <= seconds);
    let of_calls = run.calls.max(run.times_to_success.len() as u64);
    within as f64 / of_calls as f64
}

fn described(run: &Run) -> String {
    let middle = run.times_to_success.get(run.times_to_success.len() / 2);
    let middle = middle.copied().map_or_else(|| "–".to_owned(), duration);
    format!(
        "{}: {} of calls succeed, half of those within {middle}.",
        run.name,
        percent(run.success())
    )
}

fn told(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "–".to_owned(), duration)
}
