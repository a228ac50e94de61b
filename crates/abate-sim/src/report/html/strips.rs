//! What breakers, limits and budgets did: a strip for each, the stronger its colour the more.

use super::super::figures::bins;
use super::super::number::{rate, short};
use super::panels::{View, panels, troubles};
use super::section::Section;
use super::svg::{Plot, Scale, WIDTH, strip};
use crate::record::{Bin, Run};
use maud::html;

struct Row {
    name: &'static str,
    value: fn(&Bin) -> u32,
    /// Counted over the bin, rather than seen at its end.
    is_count: bool,
}

const ROWS: [Row; 6] = [
    Row { name: "breakers not closed", value: |bin| bin.breakers_open, is_count: false },
    Row { name: "refused by a breaker", value: |bin| bin.refused_by_breaker, is_count: true },
    Row { name: "in flight under limits", value: |bin| bin.in_use, is_count: false },
    Row { name: "refused by a limit", value: |bin| bin.refused_by_limit, is_count: true },
    Row { name: "retries without budget", value: |bin| bin.denied_by_budget, is_count: true },
    Row { name: "work done for nobody", value: |bin| bin.wasted, is_count: true },
];

const ROW: u32 = 42;

/// The strips that have anything on them; none where nothing was refused, denied or wasted.
pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let most = |row: &Row| view.runs().map(|(run, _)| row.most(run)).fold(0.0, f64::max);
    let rows: Vec<_> =
        ROWS.iter().map(|row| (row, most(row))).filter(|(_, most)| *most > 0.0).collect();
    let height = ROW * u32::try_from(rows.len()).ok().filter(|rows| *rows > 0)?;
    let body = panels(view.runs().map(|(run, _)| {
        let plot = Plot {
            height,
            title: format!("{}: breakers, limits and budgets", run.name),
            description: format!("{} {}", told(run, &rows), troubles(run)),
            across: view.time_ticks(),
            shades: view.shades(run),
            ..Plot::default()
        };
        let strips = html! {
            @for (at, (row, most)) in rows.iter().enumerate() {
                @let top = at as u32 * ROW;
                text.row x="4" y=(top + 16) { (row.name) }
                text.row.ends.none[row.most(run) == 0.0] x="100%" dx="-4" y=(top + 16) { (row.told(run)) }
                rect.track x="0" y=(top + 22) width="100%" height="12" {}
                svg x="0" y=(top + 22) width="100%" height="12" viewBox=(format!("0 0 {WIDTH} 1")) preserveAspectRatio="none" {
                    @for (level, d) in strip(&view.steps(run, Scale::linear(*most)), &row.values(run)).iter().enumerate() {
                        @if !d.is_empty() { path class=(format!("level-{}", level + 1)) d=(d) {} }
                    }
                }
            }
        };
        (&*run.name, String::new(), plot.draw(&html! {}, &strips))
    }));
    Some(Section {
        title: "Breakers, limits and budgets",
        about: "When they held something back, or the dependency worked in vain. The stronger the colour, the more, on the same scale for every policy; the most is on the right.",
        legend: Vec::new(),
        body,
    })
}

impl Row {
    fn values(&self, run: &Run) -> Vec<f64> {
        let over = if self.is_count { run.step.as_secs_f64() } else { 1.0 };
        bins(run).iter().map(|bin| f64::from((self.value)(bin)) / over).collect()
    }

    fn most(&self, run: &Run) -> f64 {
        self.values(run).into_iter().fold(0.0, f64::max)
    }

    fn told(&self, run: &Run) -> String {
        match self.most(run) {
            0.0 => "none".to_owned(),
            most if self.is_count => format!("up to {}/s", short(most)),
            most => format!("up to {}", rate(most)),
        }
    }
}

fn told(run: &Run, rows: &[(&Row, f64)]) -> String {
    rows.iter()
        .map(|(row, _)| format!("{}: {}.", row.name, row.told(run)))
        .collect::<Vec<_>>()
        .join(" ")
}
