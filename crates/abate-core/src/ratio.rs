//! A share between nothing and all, exact to one part in a billion.

use std::fmt;

const BILLION: u32 = 1_000_000_000;

/// A share in `0..=1`, kept in parts per billion so that adding it up never drifts.
///
/// # Examples
///
/// ```
/// use abate_core::ratio::Ratio;
///
/// let ratio = Ratio::new(0.7)?;
/// assert_eq!(ratio.parts_per_billion(), 700_000_000);
/// assert!(Ratio::new(1.5).is_err());
/// # Ok::<(), abate_core::ratio::RatioError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// All.
    pub const ONE: Self = Self(BILLION);

    /// A ratio from a number in `0.0..=1.0`, rounded to the nearest billionth.
    ///
    /// # Errors
    ///
    /// When `value` is not a number or lies outside `0.0..=1.0`.
    pub fn new(value: f64) -> Result<Self, RatioError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self((value * f64::from(BILLION)).round() as u32))
        } else {
            Err(RatioError(value))
        }
    }

    /// A ratio from whole percent; `None` above 100.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        if percent <= 100 { Some(Self(percent * (BILLION / 100))) } else { None }
    }

    /// The ratio in parts per billion.
    #[must_use]
    pub const fn parts_per_billion(self) -> u32 {
        self.0
    }

    /// The ratio as a number in `0.0..=1.0`.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(BILLION)
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ratio({})", self.as_f64())
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.as_f64() * 100.0)
    }
}

/// The number given is no share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioError(f64);

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ratio lies between 0 and 1, but got {}", self.0)
    }
}

impl std::error::Error for RatioError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_is_kept_exactly() {
        for (value, parts) in [
            (0.05, 50_000_000),
            (0.15, 150_000_000),
            (0.3, 300_000_000),
            (0.7, 700_000_000),
            (0.000_000_001, 1),
            (1.0, BILLION),
        ] {
            assert_eq!(Ratio::new(value).map(Ratio::parts_per_billion), Ok(parts));
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for value in [-0.1, 1.000_000_1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Ratio::new(value).is_err(), "{value}");
        }
        assert_eq!(Ratio::from_percent(101), None);
        assert_eq!(Ratio::from_percent(100), Some(Ratio::ONE));
    }
}
