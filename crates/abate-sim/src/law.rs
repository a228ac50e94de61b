//! How long things take, and the random numbers that say so.

use std::time::Duration;

use abate_core::rng::{Seed, Stream};

/// A law that durations follow.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Law {
    /// Always the same.
    Constant(Duration),
    /// Exponential, as of independent work; its mean.
    Exponential(Duration),
    /// Even between two durations.
    Uniform(Duration, Duration),
    /// Normal, its negative part mirrored; mean and standard deviation.
    Normal(Duration, Duration),
}

impl Law {
    /// No time at all.
    pub const NOTHING: Self = Self::Constant(Duration::ZERO);

    /// Its mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match *self {
            Self::Constant(length) | Self::Exponential(length) | Self::Normal(length, _) => length,
            Self::Uniform(least, most) => (least + most) / 2,
        }
    }

    /// How long the work on attempt number `attempt` of call number `call` takes by this law, in every run
    /// from `seed`: for whatever stands in for a server.
    #[must_use]
    pub fn of_attempt(&self, seed: u64, call: u32, attempt: u32) -> Duration {
        let seed = Seed::new(seed);
        let mut draws = Draws::of_attempt(seed, Purpose::Service, call, attempt);
        Duration::from_nanos(self.draw(&mut draws))
    }

    /// A duration by this law, in nanoseconds.
    pub(crate) fn draw(&self, draws: &mut Draws) -> u64 {
        match *self {
            Self::Constant(length) => nanos(length),
            Self::Exponential(mean) => (-libm::log(draws.unit()) * mean.as_nanos() as f64) as u64,
            Self::Uniform(least, most) => {
                let spread = nanos(most.saturating_sub(least));
                nanos(least) + draws.stream.below(spread.saturating_add(1))
            }
            Self::Normal(mean, deviation) => {
                // Box and Muller, 1958; one of its two numbers.
                let radius = libm::sqrt(-2.0 * libm::log(draws.unit()));
                let angle = 2.0 * std::f64::consts::PI * draws.unit();
                let standard = radius * libm::cos(angle);
                let drawn = mean.as_nanos() as f64 + standard * deviation.as_nanos() as f64;
                libm::fabs(drawn) as u64
            }
        }
    }
}

/// Whether attempt number `attempt` of call number `call` fails in every run from `seed`, at a server where
/// requests do with this probability: for whatever stands in for it.
#[must_use]
pub fn attempt_fails(probability: f64, seed: u64, call: u32, attempt: u32) -> bool {
    let mut draws = Draws::of_attempt(Seed::new(seed), Purpose::Luck, call, attempt);
    draws.happens(probability)
}

/// What a random number is for. Those for one purpose are the same whatever is drawn for others, so
/// that two policies meet the same arrivals and the same luck.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    Arrivals,
    Client,
    Outward,
    Homeward,
    Service,
    Luck,
    Think,
}

/// Random numbers for one purpose and one thing.
#[derive(Debug, Clone)]
pub(crate) struct Draws {
    stream: Stream,
}

impl Draws {
    pub(crate) fn new(seed: Seed, purpose: Purpose, thing: u64) -> Self {
        Self { stream: seed.part(purpose as u64).stream(thing) }
    }

    /// For an attempt of a call.
    pub(crate) fn of_attempt(seed: Seed, purpose: Purpose, call: u32, attempt: u32) -> Self {
        Self::new(seed, purpose, u64::from(call) << 32 | u64::from(attempt))
    }

    /// Above 0, up to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        const BITS: u32 = 53;
        (self.stream.below(1 << BITS) + 1) as f64 / (1_u64 << BITS) as f64
    }

    /// Whether something of this probability happens.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() <= probability
    }

    /// Evenly one of the numbers below `end`; 0 where there is none.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.stream.below(end.into())).unwrap_or(0)
    }
}

/// Whole nanoseconds, at the most 584 years of them.
pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_law_has_its_mean() {
        let second = Duration::from_secs(1);
        let laws = [
            Law::Constant(second),
            Law::Exponential(second),
            Law::Uniform(second / 2, second * 3 / 2),
            Law::Normal(second, second / 5),
        ];
        for law in laws {
            let mut draws = Draws::new(Seed::new(1), Purpose::Service, 0);
            let sum: u64 = (0..100_000).map(|_| law.draw(&mut draws)).sum();
            let mean = sum as f64 / 100_000.0 / 1e9;
            assert!((mean - 1.0).abs() < 0.02, "{law:?}: {mean}");
            assert_eq!(law.mean(), second);
        }
    }

    #[test]
    fn probabilities_hold() {
        let mut draws = Draws::new(Seed::new(1), Purpose::Luck, 0);
        let hits = (0..100_000).filter(|_| draws.happens(0.3)).count();
        assert!((29_300..30_700).contains(&hits), "{hits}");
        assert!(!draws.happens(0.0));
        assert!(draws.happens(1.0));
    }
}
