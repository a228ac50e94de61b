//! The style sheet, which no compiler reads.

use std::collections::HashMap;

const CSS: &str = include_str!("page.css");

/// What is written in one colour on another.
const TEXTS: [(&str, &str); 12] = [
    ("ink", "paper"),
    ("ink", "raised"),
    ("muted", "paper"),
    ("muted", "grid"),
    ("bad", "paper"),
    ("bad", "never"),
    ("ink", "soon"),
    ("ink", "later"),
    ("ink", "late"),
    ("policy-1", "paper"),
    ("policy-3", "paper"),
    ("policy-4", "paper"),
];

/// What has to be told from the paper, and from its neighbour.
const SHAPES: [(&str, &str); 8] = [
    ("first", "paper"),
    ("retries", "paper"),
    ("good", "paper"),
    ("good", "offered"),
    ("queue", "paper"),
    ("policy-2", "paper"),
    ("policy-5", "paper"),
    ("policy-6", "paper"),
];

#[test]
fn text_can_be_read_and_shapes_can_be_told_apart_in_both_themes() {
    let [light, dark] = themes();
    for (theme, name) in [(light, "light"), (dark, "dark")] {
        for (pairs, least) in [(&TEXTS[..], 4.5), (&SHAPES[..], 3.0)] {
            for (front, back) in pairs {
                let contrast = contrast(theme[front], theme[back]);
                assert!(contrast >= least, "{name}: {front} on {back} has {contrast:.2}");
            }
        }
    }
}

#[test]
fn every_colour_that_is_used_is_set_in_both_themes() {
    let used = CSS.split("var(--").skip(1).filter_map(|rest| rest.split_once(')'));
    let used: Vec<_> = used.map(|(name, _)| name).collect();
    assert!(used.len() > 30);
    for name in used {
        assert_eq!(CSS.matches(&format!(" --{name}:")).count(), 2, "{name}");
    }
}

type Colour = [f64; 3];

/// The colours that each of the two themes sets.
fn themes() -> [HashMap<&'static str, Colour>; 2] {
    let mut roots = CSS.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap_or(""));
    [(); 2].map(|()| roots.next().unwrap_or("").split(';').filter_map(colour).collect())
}

fn colour(declaration: &'static str) -> Option<(&'static str, Colour)> {
    let (name, value) = declaration.trim().strip_prefix("--")?.split_once(": #")?;
    let twice = value.len() == 3;
    let digit = |at: usize| value.get(at..=at).and_then(|digit| u8::from_str_radix(digit, 16).ok());
    let part = |at: usize| {
        let (high, low) = if twice { (at, at) } else { (2 * at, 2 * at + 1) };
        Some(f64::from(16 * digit(high)? + digit(low)?) / 255.0)
    };
    Some((name, [part(0)?, part(1)?, part(2)?]))
}

/// As WCAG 2.2 defines it.
fn contrast(a: Colour, b: Colour) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance(colour: Colour) -> f64 {
    let linear = |part: f64| {
        if part <= 0.04045 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) }
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}
