//! How long to wait before an attempt.
//!
//! The range is clamped first and sampled then, so that a wait at the cap is as random as any
//! other (clamping the sample would line up every late retry at the cap). A server's wish is a
//! floor, spread upwards, so that a fleet that was told one moment does not wake in one moment.
//! Full jitter: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

use std::time::Duration;

use crate::rng::Stream;

/// How the upper bound of a wait grows from retry to retry.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Curve {
    /// `base`, every time.
    Fixed,
    /// `base × factor^(retry − 1)`.
    Exponential {
        /// At least 1; 2 doubles.
        factor: f64,
    },
    /// `base + (retry − 1)^power` seconds: slow at first, patient later. Sidekiq's has a power of 4.
    Polynomial {
        /// At least 1.
        power: u32,
    },
}

/// How a wait is drawn from its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// The bound itself: for tests, and where calls are few and unrelated.
    None,
    /// Evenly from nothing to the bound: the least work for a server in trouble.
    Full,
    /// Half of the bound, and evenly up to the other half: a wait of some length is certain.
    Equal,
    /// Evenly from `base` to three times the previous wait, whatever the curve.
    Decorrelated,
    /// The bound and, evenly, up to `per_retry × retry` on top: Sidekiq's since version 7, with ten
    /// seconds.
    Added {
        /// What each retry adds to the spread.
        per_retry: Duration,
    },
    /// The bound and, on top, a whole number of seconds below `steps`, times the number of the
    /// retry: Sidekiq's up to version 6, with thirty. Waits fall on few moments when it is late.
    AddedInSteps {
        /// The whole numbers to choose from; at least 1.
        steps: u32,
    },
}

/// Where a wait comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DelaySource {
    /// Our own backoff.
    Backoff,
    /// The server's wish, plus a spread.
    Hint,
}

/// Waits before retries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first upper bound.
    pub base: Duration,
    /// How the bound grows.
    pub curve: Curve,
    /// What the bound never exceeds.
    pub cap: Duration,
    /// How a wait is drawn below the bound.
    pub jitter: Jitter,
}

impl Backoff {
    /// No wait at all: for tests. Callers that retry like this hit a dependency in trouble together.
    pub const NONE: Self = Self {
        base: Duration::ZERO,
        curve: Curve::Fixed,
        cap: Duration::ZERO,
        jitter: Jitter::None,
    };

    /// The waits of Sidekiq 7: `count⁴ + 15 + U(0, 10 × (count + 1))` seconds, for jobs that have
    /// days (the 25 retries of its default take 20 of them).
    pub const SIDEKIQ: Self = Self {
        base: Duration::from_secs(15),
        curve: Curve::Polynomial { power: 4 },
        cap: Duration::from_secs(7 * 24 * 60 * 60),
        jitter: Jitter::Added { per_retry: Duration::from_secs(10) },
    };

    /// The waits of Sidekiq up to version 6: `count⁴ + 15 + rand(30) × (count + 1)` seconds.
    pub const SIDEKIQ_LEGACY: Self =
        Self { jitter: Jitter::AddedInSteps { steps: 30 }, ..Self::SIDEKIQ };

    /// The curve at retry number `retry` (from 1), never above the cap.
    #[must_use]
    pub fn bound(&self, retry: u32) -> Duration {
        let base = self.base.as_secs_f64();
        let bound = match self.curve {
            Curve::Fixed => base,
            Curve::Exponential { factor } => grow(base, factor, retry.saturating_sub(1), self.cap),
            Curve::Polynomial { power } => {
                let count = f64::from(retry.saturating_sub(1));
                base + grow(1.0, count, power, self.cap)
            }
        };
        Duration::try_from_secs_f64(bound).unwrap_or(self.cap).min(self.cap)
    }

    /// The shortest that the wait before retry number `retry` (from 1) may be, after one of
    /// `previous`.
    #[must_use]
    pub fn floor(&self, retry: u32, previous: Duration) -> Duration {
        self.range(retry, previous).0
    }

    /// The longest that the wait before retry number `retry` (from 1) may be, after one of
    /// `previous`.
    #[must_use]
    pub fn ceiling(&self, retry: u32, previous: Duration) -> Duration {
        self.range(retry, previous).1
    }

    /// The shortest and the longest wait. The bound is clamped here, before anything is drawn.
    fn range(&self, retry: u32, previous: Duration) -> (Duration, Duration) {
        let bound = self.bound(retry);
        let above = |spread: Duration| bound.saturating_add(spread.saturating_mul(retry));
        let (least, most) = match self.jitter {
            Jitter::None => (bound, bound),
            Jitter::Full => (Duration::ZERO, bound),
            Jitter::Equal => (bound / 2, bound),
            Jitter::Decorrelated => (self.base, previous.max(self.base).saturating_mul(3)),
            Jitter::Added { per_retry } => (bound, above(per_retry)),
            Jitter::AddedInSteps { steps } => {
                (bound, above(Duration::from_secs(u64::from(steps.saturating_sub(1)))))
            }
        };
        (least.min(self.cap), most.min(self.cap))
    }

    /// The wait before retry number `retry` (from 1) after one of `previous`: drawn by the
    /// jitter, or `hint` as a floor with a spread of `U(0, max(ceiling, hint / 4))` above it.
    pub fn delay(
        &self,
        retry: u32,
        previous: Duration,
        hint: Option<Duration>,
        rng: &mut Stream,
    ) -> (Duration, DelaySource) {
        let (least, most) = self.range(retry, previous);
        match hint {
            Some(hint) if !hint.is_zero() => {
                let spread = rng.up_to(most.max(hint / 4));
                (hint.saturating_add(spread), DelaySource::Hint)
            }
            _ => (self.draw(least, most, retry, rng), DelaySource::Backoff),
        }
    }

    fn draw(&self, least: Duration, most: Duration, retry: u32, rng: &mut Stream) -> Duration {
        match self.jitter {
            Jitter::None => most,
            Jitter::AddedInSteps { steps } => {
                let seconds = Duration::from_secs(rng.below(steps.into()));
                least.saturating_add(seconds.saturating_mul(retry)).min(most)
            }
            _ => least + rng.up_to(most.saturating_sub(least)),
        }
    }
}

/// `start × factor^times`, given up once it has passed `cap`.
///
/// Multiplied out, since the last bit of `powi` differs between platforms.
fn grow(start: f64, factor: f64, times: u32, cap: Duration) -> f64 {
    let cap = cap.as_secs_f64();
    let mut grown = start;
    for _ in 0..times {
        if grown >= cap || factor == 1.0 || grown == 0.0 {
            break;
        }
        grown *= factor;
    }
    grown
}

#[cfg(test)]
mod tests;
