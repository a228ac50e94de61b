use std::fmt;
use std::time::Duration;

use super::message::MICRO;
use crate::budget::TAU;
use crate::ratio::Ratio;

/// Retries per second that the fleet may make whatever succeeds, all its processes together: enough
/// to find out that a dependency is back, and one percent of a thousand calls a second.
pub const FLOOR: f64 = 10.0;

/// How often a process hands over and asks: an outage is known to the pool a second after it began.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// The shortest interval. Less would load the store and gain nothing: whoever is short asks at once.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// The longest interval, a fifth of the tokens' time constant: with more they fade on their way.
pub const LONGEST_INTERVAL: Duration = Duration::from_secs(2);

/// The highest floor that can be counted without loss.
const HIGHEST_FLOOR: f64 = 1e6;

/// What a fleet has agreed on: the same in each of its processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    ratio: Ratio,
    floor: u64,
    interval: Duration,
}

impl Terms {
    /// A budget of `ratio` tokens for each success, and of `floor` tokens a second besides, for all
    /// processes together.
    ///
    /// # Errors
    ///
    /// When `floor` is not a number, negative, or above a million.
    pub fn new(ratio: Ratio, floor: f64) -> Result<Self, TermsError> {
        if !(0.0..=HIGHEST_FLOOR).contains(&floor) {
            return Err(TermsError::Floor(floor));
        }
        let floor = (floor * MICRO as f64).round() as u64;
        Ok(Self { ratio, floor, interval: INTERVAL })
    }

    /// The same, with messages so far apart (less a fifth to more a fifth of it).
    ///
    /// # Errors
    ///
    /// When `interval` is shorter than [`SHORTEST_INTERVAL`] or longer than [`LONGEST_INTERVAL`].
    pub fn with_interval(self, interval: Duration) -> Result<Self, TermsError> {
        if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
            Ok(Self { interval, ..self })
        } else {
            Err(TermsError::Interval(interval))
        }
    }

    /// Tokens earned by a success.
    #[must_use]
    pub const fn ratio(&self) -> Ratio {
        self.ratio
    }

    /// Millionths of a token that come by themselves in a second.
    #[must_use]
    pub const fn floor(&self) -> u64 {
        self.floor
    }

    /// How far two messages of one process are apart.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// The time constant of the tokens, in microseconds.
    #[must_use]
    pub const fn tau(&self) -> u64 {
        TAU.as_micros() as u64
    }
}

/// Why the terms of a fleet's budget are none.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum TermsError {
    /// The floor is not a number, negative, or too high.
    Floor(f64),
    /// The interval is too short or too long.
    Interval(Duration),
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Floor(floor) => {
                write!(f, "fleet.floor: {floor} is not from 0 to 1,000,000 retries per second")
            }
            Self::Interval(interval) => write!(
                f,
                "fleet.interval: {interval:?} is not from {SHORTEST_INTERVAL:?} to {LONGEST_INTERVAL:?}"
            ),
        }
    }
}

impl std::error::Error for TermsError {}
