//! Random numbers that can be asked for again: one stream per call, named by seed and call number.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rand::rngs::{SysRng, Xoshiro256PlusPlus};
use rand::{RngExt, SeedableRng, TryRng};

/// Where a stream of random numbers starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// A fixed seed, for tests and simulations: the same seed draws the same numbers.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that differs from process to process.
    #[must_use]
    pub fn random() -> Self {
        // Without the system's generator (an old sandbox), the hasher's keys still tell
        // processes apart, which is all that jitter needs.
        Self(SysRng.try_next_u64().unwrap_or_else(|_| RandomState::new().build_hasher().finish()))
    }

    /// The seed of the `n`th of several parts that are not to draw the same numbers.
    #[must_use]
    pub const fn part(self, n: u64) -> Self {
        Self(mix(self.0 ^ mix(n)))
    }

    /// The stream of call number `call`.
    #[must_use]
    pub const fn stream(self, call: u64) -> Stream {
        Stream { key: self.part(call).0, draws: 0 }
    }
}

/// 128 bits of the system's generator, which nobody can guess. `None` if that fails, as it may in an
/// old sandbox: nothing else takes its place.
#[must_use]
pub fn secret() -> Option<u128> {
    let mut bytes = [0; 16];
    SysRng.try_fill_bytes(&mut bytes).ok()?;
    Some(u128::from_ne_bytes(bytes))
}

/// Streams for call after call.
#[derive(Debug)]
pub struct Streams {
    seed: Seed,
    calls: AtomicU64,
}

impl Streams {
    /// The streams that start from `seed`.
    #[must_use]
    pub const fn new(seed: Seed) -> Self {
        Self { seed, calls: AtomicU64::new(0) }
    }

    /// Where the streams start from.
    #[must_use]
    pub const fn seed(&self) -> Seed {
        self.seed
    }

    /// The stream of the next call that needs one.
    pub fn next(&self) -> Stream {
        // Relaxed: a number, no call shares it.
        self.seed.stream(self.calls.fetch_add(1, Relaxed))
    }
}

/// The random numbers of one call, drawn one after the other.
///
/// Sixteen bytes at rest: a generator is built only when a number is drawn, which happens only
/// when something has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: u64,
    draws: u64,
}

impl Stream {
    /// A duration drawn evenly from `zero..=most`, to the nanosecond (saturating at 584 years).
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.draw(most))
    }

    /// A whole number drawn evenly from those below `end`; 0 where there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw(end.saturating_sub(1))
    }

    /// 128 bits. Whoever has seen one number of a stream may know them all: no secrets.
    pub fn bits(&mut self) -> u128 {
        u128::from(self.draw(u64::MAX)) << 64 | u128::from(self.draw(u64::MAX))
    }

    fn draw(&mut self, most: u64) -> u64 {
        self.draws += 1;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.key ^ mix(self.draws));
        rng.random_range(0..=most)
    }
}

/// SplitMix64's finalizer (Steele, Lea, Flood, 2014): every input bit reaches every output bit.
const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_secs(1);

    #[test]
    fn the_same_seed_and_call_draw_the_same_numbers() {
        let draw = |seed, call| {
            let mut stream = Seed::new(seed).stream(call);
            [stream.up_to(MOST), stream.up_to(MOST), stream.up_to(MOST)]
        };
        assert_eq!(draw(1, 7), draw(1, 7));
        assert_ne!(draw(1, 7), draw(1, 8));
        assert_ne!(draw(1, 7), draw(2, 7));
    }

    #[test]
    fn draws_are_even_over_calls_and_within_a_call() {
        for draws in [1, 4] {
            let mut tenths = [0_u32; 10];
            for call in 0..10_000 {
                let mut stream = Seed::new(3).stream(call);
                for _ in 0..draws {
                    let drawn = stream.up_to(MOST).as_nanos();
                    tenths[usize::try_from(drawn / 100_000_001).unwrap()] += 1;
                }
            }
            let expected = 1_000.0 * f64::from(draws);
            for count in tenths {
                // Five standard deviations.
                assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt(), "{tenths:?}");
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut stream = Seed::random().stream(u64::MAX);
        assert_eq!(stream.up_to(Duration::ZERO), Duration::ZERO);
        assert!(stream.up_to(Duration::MAX) <= Duration::from_nanos(u64::MAX));
    }
}
