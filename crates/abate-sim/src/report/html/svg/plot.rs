//! One plot: the axes, the trouble behind, the marks, and what is said of it to those who cannot see
//! it.
//!
//! An `svg` with a `viewBox` scales its text with it, down to nothing on a narrow screen. So the outer
//! `svg` here has none: text stands at shares of its width and keeps its size, and only the marks are
//! in an inner `svg` that is stretched to fit.

use super::scale::Scale;
use super::steps::{HEIGHT, WIDTH};
use maud::{Markup, html};

/// What stands beside an axis, and where, from 0 to 1.
#[derive(Debug, Clone)]
pub(in super::super) struct Tick {
    pub(in super::super) at: f64,
    pub(in super::super) label: String,
}

/// A stretch of time with a name, in shares of the width.
#[derive(Debug, Clone)]
pub(in super::super) struct Shade {
    pub(in super::super) from: f64,
    pub(in super::super) to: f64,
    pub(in super::super) label: String,
}

/// All around the marks.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Plot {
    /// In pixels.
    pub(in super::super) height: u32,
    /// What it shows, and whose it is.
    pub(in super::super) title: String,
    /// What there is to see.
    pub(in super::super) description: String,
    pub(in super::super) across: Vec<Tick>,
    pub(in super::super) up: Vec<Tick>,
    pub(in super::super) shades: Vec<Shade>,
}

impl Plot {
    /// Draws the plot around `marks`, which are on the grid of [`WIDTH`] by [`HEIGHT`]; `labels` are
    /// over it, in shares.
    pub(in super::super) fn draw(&self, marks: &Markup, labels: &Markup) -> Markup {
        let height = f64::from(self.height);
        let named = self.shades_with_names();
        html! {
            svg.plot role="img" width="100%" height=(self.height) {
                title { (self.title) }
                desc { (self.description) }
                @for tick in &self.up {
                    @let y = pixels((1.0 - tick.at) * height);
                    line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    text.up x="-6" y=(y) dy="0.35em" { (tick.label) }
                }
                @for (shade, is_named) in self.shades.iter().zip(named) {
                    rect.trouble x=(percent(shade.from)) width=(percent(shade.to - shade.from)) y="0" height="100%" {}
                    line.trouble x1=(percent(shade.from)) x2=(percent(shade.to)) y1="0" y2="0" {}
                    @if is_named {
                        @let ends = shade.from > 0.6;
                        text.trouble.ends[ends] x=(percent(if ends { shade.to } else { shade.from })) y="-5" {
                            (shade.label)
                        }
                    }
                }
                svg.marks viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" width="100%" height="100%" {
                    (marks)
                }
                line.axis x1="0" x2="100%" y1=(height) y2=(height) {}
                @for tick in &self.across {
                    @let x = percent(tick.at);
                    line.axis x1=(x) x2=(x) y1=(height) y2=(height + 4.0) {}
                    text.across x=(x) y=(height + 17.0) { (tick.label) }
                }
                (labels)
            }
        }
    }

    /// Whether there is room for the name of each shade on the narrowest screen.
    fn shades_with_names(&self) -> Vec<bool> {
        const SIGN: f64 = 1.0 / 40.0;
        let mut free_from = 0.0;
        let fits = |shade: &Shade| {
            let width = shade.label.chars().count() as f64 * SIGN;
            let from = if shade.from > 0.6 { shade.to - width } else { shade.from };
            let fits = from >= free_from;
            if fits {
                free_from = from + width + SIGN;
            }
            fits
        };
        self.shades.iter().map(fits).collect()
    }
}

/// A level line across the whole plot, on its grid.
pub(in super::super) fn level(value: f64, scale: &Scale) -> String {
    format!("M0 {}H{WIDTH}", ((1.0 - scale.place(value)) * HEIGHT).round())
}

/// A share as SVG has it.
pub(in super::super) fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

fn pixels(value: f64) -> String {
    format!("{value:.1}")
}
