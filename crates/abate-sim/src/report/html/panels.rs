//! Small multiples over time: a panel for each policy, all with the same axes.

use super::super::figures::{Figures, length};
use super::super::number::duration;
use super::svg::{Plot, Scale, Shade, Steps, Tick};
use crate::record::{Run, Trouble};
use maud::{Markup, html};
use std::time::Duration;

/// The runs, and what all plots of them share.
#[derive(Debug)]
pub(super) struct View<'a> {
    runs: Vec<(&'a Run, Figures)>,
    time: Scale,
}

/// What is particular to one panel.
#[derive(Debug)]
pub(super) struct Panel {
    /// What there is to see, in a few words: it stands beside the name.
    pub(super) note: String,
    pub(super) marks: Markup,
}

/// The axis upwards, and the name of what it counts.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) scale: Scale,
    pub(super) label: fn(f64) -> String,
}

impl<'a> View<'a> {
    pub(super) fn new(runs: &'a [Run]) -> Self {
        let longest = runs.iter().map(length).fold(0.0, f64::max);
        let with_figures = runs.iter().map(|run| (run, Figures::of(run)));
        Self { runs: with_figures.collect(), time: Scale::linear(longest) }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = (&'a Run, &Figures)> {
        self.runs.iter().map(|(run, figures)| (*run, figures))
    }

    /// Where the bins of `run` stand.
    pub(super) fn steps(&self, run: &Run, value: Scale) -> Steps {
        Steps { time: self.time, step: run.step.as_secs_f64(), value }
    }

    pub(super) fn time_ticks(&self) -> Vec<Tick> {
        let ticks = self.time.ticks_of_time(6).into_iter();
        ticks.map(|second| Tick { at: self.time.place(second), label: clock(second) }).collect()
    }

    pub(super) fn shades(&self, run: &Run) -> Vec<Shade> {
        let shade = |trouble: &Trouble| Shade {
            from: self.time.place(trouble.from.as_secs_f64()),
            to: self.time.place(trouble.to.as_secs_f64()),
            label: trouble.what.clone(),
        };
        run.faults.iter().map(shade).filter(|shade| shade.to > shade.from).collect()
    }

    /// A panel for each run.
    pub(super) fn over_time(
        &self,
        axis: &Axis,
        panel: impl Fn(&Run, &Figures, &Steps) -> Panel,
    ) -> Markup {
        let ticks = axis.scale.ticks(4).into_iter();
        let up: Vec<_> =
            ticks.map(|v| Tick { at: axis.scale.place(v), label: (axis.label)(v) }).collect();
        panels(self.runs().map(|(run, figures)| {
            let Panel { note, marks } = panel(run, figures, &self.steps(run, axis.scale));
            let plot = Plot {
                height: 150,
                title: format!("{}: {}", run.name, axis.title),
                description: format!("{note}. {}", troubles(run)),
                across: self.time_ticks(),
                up: up.clone(),
                shades: self.shades(run),
            };
            (&*run.name, note, plot.draw(&marks, &Markup::default()))
        }))
    }
}

/// Named pictures side by side, as many as there is room for.
pub(super) fn panels<'a>(panels: impl Iterator<Item = (&'a str, String, Markup)>) -> Markup {
    let panels: Vec<_> = panels.collect();
    let columns = match panels.len() {
        few @ 0..=4 => few,
        5 | 6 | 9 => 3,
        _ => 4,
    };
    html! {
        div class=(format!("panels of-{columns}")) {
            @for (name, note, picture) in panels {
                figure {
                    figcaption { b { (name) } " " span { (note) } }
                    (picture)
                }
            }
        }
    }
}

/// When there was trouble, in words.
pub(super) fn troubles(run: &Run) -> String {
    let [first, more @ ..] = &*run.faults else {
        return "No trouble.".to_owned();
    };
    let (from, to) = (duration(first.from), duration(first.to));
    let more = match more.len() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("Trouble from {from} to {to}: {}{more}.", first.what)
}

/// A point in time on an axis.
fn clock(seconds: f64) -> String {
    match seconds {
        whole if whole.fract() == 0.0 && whole < 3_600.0 => format!("{whole} s"),
        _ => Duration::try_from_secs_f64(seconds).map_or_else(|_| "–".to_owned(), duration),
    }
}
