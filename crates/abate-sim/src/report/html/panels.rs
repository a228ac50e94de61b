//! Small multiples over time: a panel for each policy, all with the same axes.

use super::super::figures::{Figures, length};
use super::super::number::{duration, short};
use super::svg::{Plot, Scale, Shade, Steps, Tick};
use crate::record::{Run, Trouble};
use maud::{Markup, html};

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

    /// Round times, in the unit that fits them all; the last one names it.
    pub(super) fn time_ticks(&self) -> Vec<Tick> {
        let seconds = self.time.ticks_of_time(5);
        let last = seconds.last().copied().unwrap_or_default();
        let (size, unit) = match last {
            10_800.0.. => (3_600.0, "h"),
            900.0.. => (60.0, "min"),
            1.0.. => (1.0, "s"),
            _ => (1e-3, "ms"),
        };
        let label = |second: f64| {
            let unit = if second == last { format!(" {unit}") } else { String::new() };
            format!("{}{unit}", short(second / size))
        };
        let tick = |second| Tick { at: self.time.place(second), label: label(second) };
        seconds.into_iter().map(tick).collect()
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
    let columns = columns(panels.len());
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

/// How many panels stand side by side on a wide screen.
pub(super) fn columns(panels: usize) -> usize {
    match panels {
        few @ 0..=4 => few,
        5 | 6 | 9 => 3,
        _ => 4,
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
