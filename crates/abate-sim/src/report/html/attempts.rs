//! What each further attempt is worth.

use super::super::number::{percent, short};
use super::panels::{View, panels};
use super::section::Section;
use super::svg::{Plot, Scale, Tick, percent as share_of_width};
use crate::record::{Attempts, Run};
use maud::{Markup, html};

const HEIGHT: u32 = 130;

/// Up to so many bars have their figures written on them.
const FEW: usize = 5;

/// How often the first, second, … attempt brings its call to success.
pub(super) fn section(view: &View<'_>) -> Option<Section> {
    let most = view.runs().map(|(run, _)| run.attempts.len()).max().filter(|most| *most > 0)?;
    let share = Scale::linear(1.0);
    let up: Vec<_> =
        share.ticks(2).into_iter().map(|v| Tick { at: v, label: percent(v) }).collect();
    let body = panels(view.runs().map(|(run, _)| {
        let plot = Plot {
            height: HEIGHT,
            title: format!("{}: success by attempt", run.name),
            description: described(run),
            up: up.clone(),
            across: Vec::new(),
            shades: Vec::new(),
        };
        let note = format!("{} attempts", short(run.sent as f64));
        (&*run.name, note, plot.draw(&html! {}, &bars(run, most)))
    }));
    Some(Section {
        title: "Success by attempt",
        about: "How many attempts of each number brought their call to success, and below how many were sent. Low bars far to the right are load without a use.",
        legend: Vec::new(),
        body,
    })
}

fn bars(run: &Run, most: usize) -> Markup {
    let slot = 1.0 / most as f64;
    // Every so many of the numbers, so that they stay apart.
    let apart = most.div_ceil(2 * FEW);
    html! {
        text.up x="-6" y=(HEIGHT + 17) { "attempt" }
        @if most <= FEW { text.up x="-6" y=(HEIGHT + 33) { "sent" } }
        @for (at, attempts) in run.attempts.iter().enumerate() {
            @let height = worth(attempts) * f64::from(HEIGHT);
            @let middle = share_of_width((at as f64 + 0.5) * slot);
            rect.succeeded x=(share_of_width((at as f64 + 0.15) * slot)) width=(share_of_width(0.7 * slot))
                y=(format!("{:.1}", f64::from(HEIGHT) - height)) height=(format!("{height:.1}")) {}
            @if most <= FEW {
                text.value x=(middle) y=(format!("{:.1}", f64::from(HEIGHT) - height - 5.0)) { (percent(worth(attempts))) }
                text.middle x=(middle) y=(HEIGHT + 33) { (short(attempts.sent as f64)) }
            }
            @if at % apart == 0 { text.middle x=(middle) y=(HEIGHT + 17) { (at + 1) } }
        }
    }
}

fn worth(attempts: &Attempts) -> f64 {
    if attempts.sent == 0 {
        0.0
    } else {
        (attempts.succeeded as f64 / attempts.sent as f64).min(1.0)
    }
}

fn described(run: &Run) -> String {
    let told = run.attempts.iter().take(2 * FEW).enumerate();
    let told =
        told.map(|(at, of)| format!("attempt {}: {} of {}", at + 1, percent(worth(of)), of.sent));
    told.collect::<Vec<_>>().join(", ")
}
