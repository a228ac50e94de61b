/// One figure: what it should be, and what it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Of what.
    pub what: String,
    /// What it came to. `None` if it was not measured, or if that which it counts never came.
    pub got: Option<f64>,
    /// What it should be.
    pub expected: Expected,
    /// What it is counted in, for readers: `s`, `calls/s`; nothing for a ratio.
    pub unit: &'static str,
}

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Expected {
    /// Near `value`, at the most `tolerance` away.
    Near {
        /// What it should be.
        value: f64,
        /// In the figure's own unit.
        tolerance: f64,
    },
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// It never comes: a storm that does not end.
    Never,
    /// Whatever it is: it is told, not judged.
    Reported,
    /// It cannot be had yet, for this reason.
    Later(&'static str),
}

/// Whether a figure is what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Holds,
    /// It is not.
    Missed,
    /// There is nothing to judge.
    Told,
}

impl Line {
    /// A figure near `value`, up to the share `tolerance` of it away.
    pub(super) fn within(what: impl Into<String>, got: f64, value: f64, tolerance: f64) -> Self {
        let tolerance = value.abs() * tolerance;
        Self::new(what, Some(got), Expected::Near { value, tolerance })
    }

    /// A figure near `value`, up to `tolerance` away.
    pub(super) fn near(what: impl Into<String>, got: f64, value: f64, tolerance: f64) -> Self {
        Self::new(what, Some(got), Expected::Near { value, tolerance })
    }

    pub(super) fn at_most(what: impl Into<String>, got: impl Into<Option<f64>>, most: f64) -> Self {
        Self::new(what, got.into(), Expected::AtMost(most))
    }

    pub(super) fn at_least(what: impl Into<String>, got: f64, least: f64) -> Self {
        Self::new(what, Some(got), Expected::AtLeast(least))
    }

    /// Of something that does not come.
    pub(super) fn never(what: impl Into<String>, got: Option<f64>) -> Self {
        Self::new(what, got, Expected::Never)
    }

    pub(super) fn reported(what: impl Into<String>, got: impl Into<Option<f64>>) -> Self {
        Self::new(what, got.into(), Expected::Reported)
    }

    pub(super) fn later(what: impl Into<String>, why: &'static str) -> Self {
        Self::new(what, None, Expected::Later(why))
    }

    pub(super) const fn in_units(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    fn new(what: impl Into<String>, got: Option<f64>, expected: Expected) -> Self {
        Self { what: what.into(), got, expected, unit: "" }
    }

    /// Whether it is what it should be.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let holds = match (self.expected, self.got) {
            (Expected::Reported | Expected::Later(_), _) => return Verdict::Told,
            (Expected::Near { value, tolerance }, Some(got)) => (got - value).abs() <= tolerance,
            (Expected::AtMost(most), Some(got)) => got <= most,
            (Expected::AtLeast(least), Some(got)) => got >= least,
            (Expected::Never, got) => got.is_none(),
            (_, None) => false,
        };
        if holds { Verdict::Holds } else { Verdict::Missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_what_it_should_be() {
        let verdicts = [
            Line::within("a", 1.25, 1.0, 0.25).verdict(),
            Line::within("a", 1.26, 1.0, 0.25).verdict(),
            Line::near("b", 0.9, 1.0, 0.2).verdict(),
            Line::at_most("c", 2.0, 2.0).verdict(),
            Line::at_most("c", None, 2.0).verdict(),
            Line::at_least("d", 1.9, 2.0).verdict(),
            Line::never("e", None).verdict(),
            Line::never("e", Some(3.0)).verdict(),
            Line::reported("f", 1.0).verdict(),
            Line::later("g", "comes with the fleet").verdict(),
        ];
        use Verdict::{Holds, Missed, Told};
        let right = [Holds, Missed, Holds, Holds, Missed, Missed, Holds, Missed, Told, Told];
        assert_eq!(verdicts, right);
        assert_eq!(Line::near("h", f64::NAN, 1.0, 0.1).verdict(), Missed);
    }
}
