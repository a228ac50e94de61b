//! The main figures, a column for each policy as in the panels below.

use super::super::figures::Figures;
use super::super::number::{count, duration, percent, rate, ratio};
use super::panels::{View, columns};
use crate::record::Run;
use crate::recovery::Recovery;
use maud::{Markup, html};

type Cell = fn(&Run, &Figures) -> Markup;

const ROWS: [(&str, Cell); 7] = [
    ("Calls", |run, _| html! { (count(run.calls)) }),
    ("Succeed", |run, _| html! { (percent(run.success())) }),
    ("Attempts per call", |run, _| html! { (ratio(run.amplification())) }),
    ("Busiest second", busiest),
    ("Back after the trouble", back),
    (
        "Worst p99",
        |_, figures| html! { (figures.worst_p99.map_or_else(|| "–".to_owned(), duration)) },
    ),
    ("Why calls failed", endings),
];

/// The table; nothing without runs.
pub(super) fn table(view: &View<'_>) -> Markup {
    if view.runs().next().is_none() {
        return Markup::default();
    }
    html! {
        div.scroll tabindex="0" role="group" aria-label="Main figures" {
            table class=(format!("figures of-{}", columns(view.runs().count()))) {
                caption.unseen { "Main figures of each policy" }
                thead {
                    tr {
                        td {}
                        @for (run, _) in view.runs() { th scope="col" { (run.name) } }
                    }
                }
                tbody {
                    @for (name, cell) in ROWS {
                        tr {
                            th scope="row" { (name) }
                            @for (run, figures) in view.runs() { td { (cell(run, figures)) } }
                        }
                    }
                }
            }
        }
    }
}

fn busiest(_: &Run, figures: &Figures) -> Markup {
    html! {
        (rate(figures.peak)) " attempts"
        @if let Some(capacity) = figures.capacity {
            small { (ratio(figures.peak / capacity)) " × capacity (" (rate(capacity)) "/s)" }
        }
    }
}

fn endings(run: &Run, _: &Figures) -> Markup {
    const MOST: usize = 4;
    html! {
        @if run.endings.is_empty() { "–" }
        @for (why, calls) in run.endings.iter().take(MOST) {
            span.ending { (why) " " b { (count(*calls)) } }
        }
        @if run.endings.len() > MOST { small { "and other reasons" } }
    }
}

fn back(_: &Run, figures: &Figures) -> Markup {
    match figures.recovery {
        Recovery::NoTrouble => html! { "no trouble" },
        Recovery::After(time) => html! { (duration(time)) },
        Recovery::Never => html! {
            span.bad { "never" }
            small { "in the " (duration(figures.watched)) " after it" }
        },
        Recovery::Unknown => html! { "cannot be told" },
    }
}
