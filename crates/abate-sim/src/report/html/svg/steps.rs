//! Counts over time as lines and areas. Each bin is a flat step: what was counted in it was counted over
//! all of it, and a run of one bin can be seen too.

use super::scale::Scale;
use super::thin::kept;
use std::fmt::{self, Write as _};

/// The grid that paths are drawn on: whole numbers, finer than the pixels of a wide screen.
pub(in super::super) const WIDTH: f64 = 1_200.0;
/// Its height; downwards, as SVG counts.
pub(in super::super) const HEIGHT: f64 = 600.0;

/// Where bins stand: the time scale in seconds, and the width of a bin.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Steps {
    pub(in super::super) time: Scale,
    pub(in super::super) step: f64,
    pub(in super::super) value: Scale,
}

impl Steps {
    /// The `d` of a path along the values; a value that is not a number leaves a gap.
    pub(in super::super) fn line(&self, values: &[f64]) -> String {
        let mut path = Path::default();
        for (value, from, to) in self.spans_of(values) {
            if value.is_nan() {
                path.lift();
            } else {
                path.step(from, to, self.y(value));
            }
        }
        path.d
    }

    /// The `d` of a path around what lies between two rows of values of equal length.
    pub(in super::super) fn area(&self, low: &[f64], high: &[f64]) -> String {
        let spans: Vec<_> = self.spans(high).collect();
        let mut path = Path::default();
        for &(at, from, to) in &spans {
            path.step(from, to, self.y(high[at]));
        }
        for &(at, from, to) in spans.iter().rev() {
            path.step(to, from, self.y(low.get(at).copied().unwrap_or(0.0)));
        }
        if !path.d.is_empty() {
            path.d.push('Z');
        }
        path.d
    }

    /// Each value that is drawn, from where, to where the next begins.
    pub(super) fn spans_of(&self, values: &[f64]) -> impl Iterator<Item = (f64, i32, i32)> {
        self.spans(values).map(|(at, from, to)| (values[at], from, to))
    }

    /// The same with the index of the value.
    fn spans(&self, values: &[f64]) -> impl Iterator<Item = (usize, i32, i32)> {
        let kept = kept(values);
        let next: Vec<_> = kept.iter().skip(1).copied().chain([values.len()]).collect();
        kept.into_iter().zip(next).map(|(at, next)| (at, self.x(at), self.x(next)))
    }

    fn x(&self, bin: usize) -> i32 {
        (self.time.place(bin as f64 * self.step) * WIDTH).round() as i32
    }

    fn y(&self, value: f64) -> i32 {
        ((1.0 - self.value.place(value)) * HEIGHT).round() as i32
    }
}

/// A path of level and upright strokes, with as few of them as it takes.
#[derive(Debug, Default)]
struct Path {
    d: String,
    pen: Option<(i32, i32)>,
    /// Where the last level stroke was written, to be drawn out if the next goes on from it.
    level: usize,
}

impl Path {
    fn step(&mut self, from: i32, to: i32, y: i32) {
        match self.pen {
            Some((x, before)) if x == from && before == y => self.d.truncate(self.level),
            Some((x, _)) if x == from => self.write(format_args!("V{y}")),
            Some(_) => self.write(format_args!("L{from} {y}")),
            None => self.write(format_args!("M{from} {y}")),
        }
        self.level = self.d.len();
        self.write(format_args!("H{to}"));
        self.pen = Some((to, y));
    }

    /// Ends the line here; the next step begins another.
    fn lift(&mut self) {
        self.pen = None;
    }

    fn write(&mut self, stroke: fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _ = self.d.write_fmt(stroke);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(bins: f64, high: f64) -> Steps {
        Steps { time: Scale::linear(bins), step: 1.0, value: Scale::linear(high) }
    }

    #[test]
    fn equal_neighbours_are_one_stroke() {
        assert_eq!(steps(4.0, 2.0).line(&[1.0, 1.0, 2.0, 2.0]), "M0 300H600V0H1200");
    }

    #[test]
    fn what_is_not_known_leaves_a_gap() {
        let line = steps(4.0, 1.0).line(&[0.0, f64::NAN, f64::NAN, 1.0]);
        assert_eq!(line, "M0 600H300M900 0H1200");
    }

    #[test]
    fn an_area_goes_there_and_back() {
        let steps = steps(2.0, 4.0);
        assert_eq!(steps.area(&[1.0, 1.0], &[2.0, 4.0]), "M0 300H600V0H1200V450H0Z");
        assert_eq!(steps.area(&[], &[4.0, 4.0]), "M0 0H1200V600H0Z");
        assert_eq!(steps.area(&[], &[]), "");
    }

    #[test]
    fn a_single_bin_can_be_seen() {
        assert_eq!(steps(1.0, 2.0).line(&[1.0]), "M0 300H1200");
    }
}
