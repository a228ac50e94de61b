//! How long to wait before an attempt.
//!
//! The range is clamped first and sampled then, so that a wait at the cap is as random as any
//! other (clamping the sample would line up every late retry at the cap). A server's wish is a
//! floor, spread upwards, so that a fleet that was told one moment does not wake in one moment.
//! Full jitter: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.

use std::time::Duration;

use crate::retry_after::Pushback;
use crate::rng::Stream;

/// How the upper bound of a wait grows from retry to retry.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Curve {
    /// `base × factor^(retry − 1)`.
    Exponential {
        /// At least 1; 2 doubles.
        factor: f64,
    },
}

/// How a wait is drawn below its upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// The upper bound itself: for tests, and where calls are few and unrelated.
    None,
    /// Evenly from nothing to the upper bound: the least work for a server in trouble.
    Full,
}

/// Where a wait comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The longest that the wait before retry number `retry` (from 1) may be.
    #[must_use]
    pub fn ceiling(&self, retry: u32) -> Duration {
        let Curve::Exponential { factor } = self.curve;
        let cap = self.cap.as_secs_f64();
        let mut bound = self.base.as_secs_f64();
        // Multiplied out, since the last bit of `powi` differs between platforms; a bound that
        // has reached the cap, or that does not grow, stays where it is.
        for _ in 1..retry {
            if bound >= cap || factor <= 1.0 {
                break;
            }
            bound *= factor;
        }
        if bound >= cap { self.cap } else { Duration::from_secs_f64(bound) }
    }

    /// The wait before retry number `retry` (from 1): the jittered bound, or `hint` as a floor
    /// with a spread of `U(0, max(bound, hint / 4))` above it.
    pub fn delay(
        &self,
        retry: u32,
        hint: Option<Pushback>,
        rng: &mut Stream,
    ) -> (Duration, DelaySource) {
        let ceiling = self.ceiling(retry);
        match hint.map(Pushback::delay) {
            Some(hint) if !hint.is_zero() => {
                let spread = rng.up_to(ceiling.max(hint / 4));
                (hint.saturating_add(spread), DelaySource::Hint)
            }
            _ => {
                let delay = match self.jitter {
                    Jitter::None => ceiling,
                    Jitter::Full => rng.up_to(ceiling),
                };
                (delay, DelaySource::Backoff)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Seed;

    const BACKOFF: Backoff = Backoff {
        base: Duration::from_millis(100),
        curve: Curve::Exponential { factor: 2.0 },
        cap: Duration::from_secs(10),
        jitter: Jitter::Full,
    };

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let bounds: Vec<_> = (1..=9).map(|retry| BACKOFF.ceiling(retry).as_millis()).collect();
        assert_eq!(bounds, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    }

    // BO-02
    #[test]
    fn a_late_retry_stays_within_the_cap_and_random_at_it() {
        let mut rng = Seed::new(1).stream(0);
        let mut below = 0;
        for retry in 1..=10_000 {
            let (delay, source) = BACKOFF.delay(retry, None, &mut rng);
            assert!(delay <= BACKOFF.cap);
            assert_eq!(source, DelaySource::Backoff);
            below += u32::from(retry > 7 && delay < BACKOFF.cap / 2);
        }
        assert!((4_700..5_300).contains(&below), "not evenly spread at the cap: {below}");
        assert_eq!(BACKOFF.ceiling(u32::MAX), BACKOFF.cap);
    }

    #[test]
    fn a_bound_that_does_not_grow_costs_no_time_at_any_attempt() {
        let flat = Backoff { curve: Curve::Exponential { factor: 1.0 }, ..BACKOFF };
        assert_eq!(flat.ceiling(u32::MAX), flat.base);
    }

    #[test]
    fn five_attempts_wait_three_quarters_of_a_second_in_the_median() {
        let mut totals: Vec<_> = (0..20_001)
            .map(|call| {
                let mut rng = Seed::new(5).stream(call);
                (1..=4).map(|retry| BACKOFF.delay(retry, None, &mut rng).0).sum::<Duration>()
            })
            .collect();
        totals.sort();
        let median = totals[10_000].as_secs_f64();
        assert!((median - 0.752).abs() < 0.752 * 0.02, "{median}");
        assert!(totals[20_000] <= seconds(1.5));
    }

    #[test]
    fn a_hint_is_a_floor_and_is_spread_above() {
        for (hint, most) in [(2.0, 2.5), (0.05, 0.15), (40.0, 50.0)] {
            let pushback = Some(Pushback::new(seconds(hint)));
            let delays: Vec<_> = (0..1_000)
                .map(|call| BACKOFF.delay(1, pushback, &mut Seed::new(2).stream(call)))
                .collect();
            assert!(delays.iter().all(|(_, source)| *source == DelaySource::Hint));
            let (least, longest) =
                (delays.iter().min_by_key(|d| d.0), delays.iter().max_by_key(|d| d.0));
            let (least, longest) = (least.unwrap().0, longest.unwrap().0);
            assert!(least >= seconds(hint), "{hint} s was knocked at early: {least:?}");
            assert!(longest <= seconds(most + 1e-9));
            assert!(longest - least > (seconds(most) - seconds(hint)) / 2, "no spread");
        }
    }

    // RA-01, RA-15
    #[test]
    fn a_hint_of_nothing_leaves_the_jittered_backoff() {
        let zero = Some(Pushback::new(Duration::ZERO));
        let with = BACKOFF.delay(3, zero, &mut Seed::new(9).stream(4));
        let without = BACKOFF.delay(3, None, &mut Seed::new(9).stream(4));
        assert_eq!(with, without);
    }

    // RA-07
    #[test]
    fn the_longest_hint_saturates() {
        let hint = Some(Pushback::new(Duration::MAX));
        assert_eq!(BACKOFF.delay(1, hint, &mut Seed::new(1).stream(0)).0, Duration::MAX);
    }

    proptest! {
        #[test]
        fn no_delay_leaves_its_range(
            base in 0_u64..1 << 50,
            cap in 0_u64..1 << 50,
            factor in 1.0..1e300,
            retry in 1_u32..10_000,
        ) {
            let backoff = Backoff {
                base: Duration::from_nanos(base),
                curve: Curve::Exponential { factor },
                cap: Duration::from_nanos(cap),
                jitter: Jitter::Full,
            };
            let (delay, _) = backoff.delay(retry, None, &mut Seed::new(0).stream(1));
            prop_assert!(delay <= backoff.ceiling(retry));
            prop_assert!(backoff.ceiling(retry) <= backoff.cap);
        }
    }
}
