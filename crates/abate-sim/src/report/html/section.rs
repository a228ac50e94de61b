//! One question, and its panels.

use maud::{Markup, Render, html};

/// A heading, what to look for, what the colours mean, and the panels.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// A class of the style sheet, and what has its colour.
    pub(super) legend: Vec<(&'static str, String)>,
    pub(super) body: Markup,
}

impl Render for Section {
    fn render(&self) -> Markup {
        html! {
            section {
                h2 { (self.title) }
                p.about { (self.about) }
                @if !self.legend.is_empty() {
                    ul.legend {
                        @for (class, text) in &self.legend { li { (swatch(class)) (text) } }
                    }
                }
                (self.body)
            }
        }
    }
}

/// A sample of a colour. As SVG, since browsers leave out backgrounds when they print.
fn swatch(class: &str) -> Markup {
    let is_line = class.starts_with("line");
    html! {
        svg.swatch aria-hidden="true" width="22" height="12" {
            @if is_line { path class=(class) d="M0 6H22" {} }
            @else {
                rect class=(class) width="22" height="12" {}
                @if class == "trouble" { line.trouble x1="0" x2="22" y1="1" y2="1" {} }
            }
        }
    }
}
