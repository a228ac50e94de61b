//! What each policy recovers from, over load and length of the trouble. A table, so that it can be read
//! out, copied and printed; the colours only help.

use super::super::comparison::{Grid, Map};
use super::super::number::{duration, percent};
use super::panels::panels;
use super::section::Section;
use maud::{Markup, html};
use std::time::Duration;

/// The tables; none without policies.
pub(super) fn section(map: &Map) -> Option<Section> {
    let all = map.policies.iter().flat_map(|grid| grid.recovery.iter().flatten().flatten());
    let longest = all.max().copied().unwrap_or_default();
    let body = panels(
        map.policies.iter().map(|grid| (&*grid.name, recovered(grid), table(map, grid, longest))),
    );
    (!map.policies.is_empty()).then_some(Section {
        title: "Where it recovers",
        about: "The time from the end of the trouble until calls succeed again, by how busy the dependency is (columns) and how long the trouble lasts (rows).",
        legend: vec![("soon", "soon".to_owned()), ("late", "late".to_owned()), ("never", "never".to_owned())],
        body,
    })
}

fn table(map: &Map, grid: &Grid, longest: Duration) -> Markup {
    html! {
        div.scroll tabindex="0" role="group" aria-label=(format!("{}: where it recovers", grid.name)) {
            table.map {
                thead {
                    tr {
                        th scope="col" { span.unseen { "length of the trouble, by load" } }
                        @for load in &map.loads { th scope="col" { (percent_of_capacity(*load)) } }
                    }
                }
                tbody {
                    @for (outage, row) in map.outages.iter().zip(&grid.recovery) {
                        tr {
                            th scope="row" { (duration(*outage)) }
                            @for cell in row { (told(*cell, longest)) }
                        }
                    }
                }
            }
        }
    }
}

fn told(cell: Option<Duration>, longest: Duration) -> Markup {
    let Some(time) = cell else {
        return html! { td.never { "never" } };
    };
    let share = if longest.is_zero() { 0.0 } else { time.div_duration_f64(longest) };
    let class = match share {
        ..0.25 => "soon",
        ..0.6 => "later",
        _ => "late",
    };
    html! { td class=(class) { (duration(time)) } }
}

/// A load may be above what the dependency can do.
fn percent_of_capacity(load: f64) -> String {
    if load > 1.0 { format!("{:.0} %", load * 100.0) } else { percent(load) }
}

fn recovered(grid: &Grid) -> String {
    let cells = grid.recovery.iter().flatten();
    let (all, back) = (cells.clone().count(), cells.flatten().count());
    format!("recovers from {back} of {all}")
}
