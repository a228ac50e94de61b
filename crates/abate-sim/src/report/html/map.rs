//! What each policy recovers from, over load and length of the trouble. A table, so that it can be read
//! out, copied and printed; the colours only help.

use super::super::comparison::{Grid, Map};
use super::super::number::{duration, percent};
use super::panels::panels;
use super::section::Section;
use maud::{Markup, html};
use std::time::Duration;

/// Up to here a recovery is soon: one window of calls.
const SOON: Duration = Duration::from_secs(10);
/// Up to here it is not late yet: what people wait for without doing anything.
const LATER: Duration = Duration::from_secs(60);

/// The tables; none without policies.
pub(super) fn section(map: &Map) -> Option<Section> {
    let grids = map.policies.iter();
    let body = panels(grids.map(|grid| (&*grid.name, recovered(grid), table(map, grid))));
    (!map.policies.is_empty()).then_some(Section {
        title: "Where it recovers",
        about: "The time from the end of the trouble until calls succeed again, by how busy the dependency is (columns) and how long the trouble lasts (rows).",
        legend: vec![
            ("soon", format!("up to {}", duration(SOON))),
            ("later", format!("up to {}", duration(LATER))),
            ("late", "later than that".to_owned()),
            ("never", "never".to_owned()),
        ],
        body,
    })
}

fn table(map: &Map, grid: &Grid) -> Markup {
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
                    @for (row, outage) in map.outages.iter().enumerate() {
                        tr {
                            th scope="row" { (duration(*outage)) }
                            @for column in 0..map.loads.len() {
                                (told(grid.recovery.get(row).and_then(|row| row.get(column))))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// One cell; there is none where nobody looked.
fn told(cell: Option<&Option<Duration>>) -> Markup {
    let (class, text) = match cell {
        None => ("", "–".to_owned()),
        Some(None) => ("never", "never".to_owned()),
        Some(Some(time)) if *time <= SOON => ("soon", duration(*time)),
        Some(Some(time)) if *time <= LATER => ("later", duration(*time)),
        Some(Some(time)) => ("late", duration(*time)),
    };
    html! { td class=(class) { (text) } }
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
