//! The page as a whole.

use super::super::comparison::Comparison;
use super::super::number::count;
use super::super::verdict::verdict_on;
use super::panels::View;
use super::{attempts, map, over_time, strips, summary, times};
use crate::record::Run;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The comparison as one HTML page that needs nothing else: plots are inline SVG, colours follow the
/// reader's light or dark theme, and no script runs.
#[must_use]
pub fn html(comparison: &Comparison) -> String {
    let view = View::new(&comparison.runs);
    let sections = [
        over_time::attempts(&view),
        over_time::goodput(&view),
        over_time::amplification(&view),
        over_time::queue(&view),
        over_time::latency(&view),
        strips::section(&view),
        times::section(&view),
        attempts::section(&view),
        comparison.map.as_ref().and_then(map::section),
    ];
    let title = if comparison.title.is_empty() { "Storm report" } else { &comparison.title };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · abate" }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    p.kicker { "abate · storm report" }
                    h1 { (title) }
                    @if !comparison.scenario.is_empty() { p.scenario { (comparison.scenario) } }
                    (verdict(&comparison.runs))
                }
                main {
                    (summary::table(&view))
                    @for section in sections.iter().flatten() { (section) }
                }
                (colophon(&comparison.runs))
            }
        }
    };
    page.into_string()
}

fn verdict(runs: &[Run]) -> Markup {
    html! {
        p.verdict {
            @if runs.is_empty() { "Nothing was run." }
            @for (at, run) in runs.iter().enumerate() {
                @let verdict = verdict_on(run);
                b { (run.name) } (unbroken(verdict.strip_prefix(&*run.name).unwrap_or(&verdict)))
                @if at + 1 < runs.len() { "; " } @else { "." }
            }
        }
    }
}

/// The text with each figure held together with its unit.
fn unbroken(text: &str) -> String {
    let mut after_figure = false;
    let held = text.chars().map(|sign| {
        let held = if sign == ' ' && after_figure { '\u{a0}' } else { sign };
        after_figure = sign.is_ascii_digit();
        held
    });
    held.collect()
}

/// What it takes to see the same again.
fn colophon(runs: &[Run]) -> Markup {
    html! {
        footer {
            p { "Virtual time, shipped decisions: the same seed gives the same trace, event for event." }
            ul {
                @for run in runs {
                    li {
                        (run.name) ": seed " (run.seed) ", " (count(run.events)) " events, trace "
                        code { (format!("{:016x}", run.trace)) }
                    }
                }
            }
        }
    }
}
