//! From a value to its place along an axis.

/// An axis: what it spans, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Scale {
    low: f64,
    high: f64,
    law: Law,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Law {
    Linear,
    Logarithmic,
}

impl Scale {
    /// From 0 to `high`; to 1 where that is no use, as a number too small to be divided is.
    pub(in super::super) fn linear(high: f64) -> Self {
        let high = if high.is_finite() && high > 1e-200 { high } else { 1.0 };
        Self { low: 0.0, high, law: Law::Linear }
    }

    /// From 0 to a little above the highest of `values`.
    pub(in super::super) fn up_to(values: impl IntoIterator<Item = f64>) -> Self {
        let values = values.into_iter().filter(|value| value.is_finite());
        Self::linear(values.fold(0.0, f64::max) * 1.06)
    }

    /// From the power of ten below the least of `values` to the one above the greatest; none without
    /// any above 0.
    pub(in super::super) fn decades(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            values.fold((f64::MAX, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        if high == 0.0 {
            return None;
        }
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        let high = if high > low { high } else { low + 1.0 };
        Some(Self { low, high, law: Law::Logarithmic })
    }

    /// Where `value` lies, from 0 to 1; what lies beyond is held at the end.
    pub(in super::super) fn place(&self, value: f64) -> f64 {
        let value = match self.law {
            Law::Linear => value,
            Law::Logarithmic if value <= 0.0 => return 0.0,
            Law::Logarithmic => value.log10(),
        };
        let share = (value - self.low) / (self.high - self.low);
        if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
    }

    /// The value at a place from 0 to 1.
    pub(in super::super) fn value(&self, place: f64) -> f64 {
        let value = self.low + place * (self.high - self.low);
        match self.law {
            Law::Linear => value,
            Law::Logarithmic => libm::pow(10.0, value),
        }
    }

    /// Round values to write beside the axis, about so many.
    pub(in super::super) fn ticks(&self, about: usize) -> Vec<f64> {
        match self.law {
            Law::Linear => self.multiples(self.step(about, &ROUND)),
            Law::Logarithmic => {
                let decades = (self.low as i32)..=(self.high as i32);
                let apart = (decades.clone().count() / (about + 1)).max(1);
                decades.step_by(apart).map(|decade| libm::pow(10.0, f64::from(decade))).collect()
            }
        }
    }

    /// The same for seconds, which people count in sixties.
    pub(in super::super) fn ticks_of_time(&self, about: usize) -> Vec<f64> {
        let rounds = if self.high > 20.0 { &ROUND_TIMES[..] } else { &ROUND[..] };
        self.multiples(self.step(about, rounds))
    }

    /// The smallest round step that makes no more than `about` ticks above 0.
    fn step(&self, about: usize, rounds: &[f64]) -> f64 {
        let least = self.high / about.max(1) as f64;
        if let Some(step) = rounds.iter().find(|step| **step >= least && rounds.len() > ROUND.len())
        {
            return *step;
        }
        let power = libm::pow(10.0, libm::log10(least).floor());
        let step =
            ROUND.into_iter().map(|round| round * power).find(|step| *step >= least * 0.999_999);
        step.unwrap_or(power * 10.0)
    }

    fn multiples(&self, step: f64) -> Vec<f64> {
        let ticks = (self.high / step + 1e-6).floor() as u32;
        (0..=ticks).map(|tick| f64::from(tick) * step).collect()
    }
}

const ROUND: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

const ROUND_TIMES: [f64; 13] =
    [5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(Scale::up_to([4_871.0, 12.0]).ticks(4), [0.0, 2_000.0, 4_000.0]);
        assert_eq!(Scale::linear(1.0).ticks(5), [0.0, 0.2, 0.4, 0.600_000_000_000_000_1, 0.8, 1.0]);
        assert_eq!(Scale::up_to([]), Scale::linear(1.0));
        assert_eq!(Scale::up_to([f64::NAN, f64::INFINITY]), Scale::linear(1.0));
        assert_eq!(Scale::linear(300.0).ticks_of_time(6), [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]);
        assert_eq!(
            Scale::linear(0.5).ticks_of_time(5),
            [0.0, 0.1, 0.2, 0.300_000_000_000_000_04, 0.4, 0.5]
        );
        assert!(Scale::linear(1e18).ticks_of_time(6).len() <= 7);
        assert!(Scale::up_to([1e300]).ticks(4).len() <= 6);
    }

    #[test]
    fn decades_hold_all_values() {
        let scale = Scale::decades([0.0, 0.02, 12.0]);
        assert_eq!(scale.map(|scale| scale.ticks(5)), Some(vec![0.01, 0.1, 1.0, 10.0, 100.0]));
        assert_eq!(scale.map(|scale| scale.place(1.0)), Some(0.5));
        assert_eq!(scale.map(|scale| scale.place(0.0)), Some(0.0));
        assert_eq!(Scale::decades([1.0]).map(|scale| scale.place(10.0)), Some(1.0));
        assert_eq!(Scale::decades([0.0]), None);
    }

    #[test]
    fn what_lies_beyond_is_held_at_the_end() {
        let scale = Scale::linear(10.0);
        let places = [-1.0, 0.0, 5.0, 11.0, f64::NAN].map(|value| scale.place(value));
        assert_eq!(places, [0.0, 0.0, 0.5, 1.0, 0.0]);
    }
}
