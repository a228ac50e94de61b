//! What was admitted, succeeded and failed of late: ten buckets of packed counts.
//!
//! A count and the tag of its bucket share one word. The tag names generation and stretch of time,
//! so that moving on in time, and emptying the window on a transition, need no writing at all: a
//! word with another tag is an empty one.
//!
//! Orderings are relaxed throughout: each word is a figure for itself.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;

use super::rules::Rules;
use crate::deadline::nanos;
use crate::ratio::Ratio;
use crate::striped::{Padded, STRIPES, stripe};
use crate::sync::AtomicU64;

const BUCKETS: u64 = 10;

#[derive(Debug)]
pub(super) struct Window {
    /// Nanoseconds in a bucket.
    length: NonZeroU64,
    failures: [Failures; BUCKETS as usize],
    streak: Streak,
    /// What every call writes, for threads apart.
    calls: [Padded<[Calls; BUCKETS as usize]>; STRIPES],
}

#[derive(Debug, Default)]
struct Calls {
    admitted: Count,
    succeeded: Count,
}

#[derive(Debug, Default)]
struct Failures {
    failed: Count,
    /// Of all, whether they succeeded or failed.
    slow: Count,
}

/// The bucket of a moment, in a generation, and of the thread that looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    stripe: u8,
    index: u8,
    tag: u32,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) admitted: u64,
    succeeded: u64,
    failed: u64,
    slow: u64,
}

impl Window {
    pub(super) fn new(rules: &Rules) -> Self {
        let length = nanos(rules.window) / BUCKETS;
        Self {
            length: NonZeroU64::new(length).unwrap_or(NonZeroU64::MIN),
            failures: Default::default(),
            streak: Streak::default(),
            calls: Default::default(),
        }
    }

    #[inline]
    pub(super) fn place(&self, generation: u64, now: u64) -> Place {
        Self::nth(generation, now / self.length)
    }

    /// A tag comes again after 4,096 transitions and six days (at half a second a bucket), both at
    /// once and in the same bucket: never, for a count that is to be less than a window old.
    #[inline]
    fn nth(generation: u64, stretch: u64) -> Place {
        let tag = ((generation % (1 << 12)) << 20) | (stretch % (1 << 20));
        Place { stripe: stripe() as u8, index: (stretch % BUCKETS) as u8, tag: tag as u32 }
    }

    #[inline]
    fn calls(&self, place: Place) -> &Calls {
        &self.calls[usize::from(place.stripe)].0[usize::from(place.index)]
    }

    fn failures(&self, place: Place) -> &Failures {
        &self.failures[usize::from(place.index)]
    }

    #[inline]
    pub(super) fn admit(&self, place: Place) {
        self.calls(place).admitted.add(place.tag);
    }

    /// An admitted call turned out to say nothing: it is no longer counted.
    pub(super) fn discount(&self, admitted: Place) {
        self.calls(admitted).admitted.subtract(admitted.tag);
    }

    #[inline(always)]
    pub(super) fn succeed(&self, place: Place) {
        self.calls(place).succeeded.add(place.tag);
        self.streak.end(u64::from(place.tag >> 20));
    }

    /// A success turned out to be none, since its body broke off.
    pub(super) fn take_back(&self, succeeded: Place) {
        self.calls(succeeded).succeeded.subtract(succeeded.tag);
    }

    /// Counts a failure and says whether the evidence trips the breaker.
    pub(super) fn fail(&self, rules: &Rules, generation: u64, now: u64) -> bool {
        let place = self.place(generation, now);
        self.failures(place).failed.add(place.tag);
        let by_streak = self.streak.lengthen(generation, now);
        by_streak || self.trips(rules, generation, now)
    }

    /// Notes that a call which is recorded otherwise as well took long, and says whether the
    /// evidence trips the breaker.
    pub(super) fn slow(&self, rules: &Rules, generation: u64, now: u64) -> bool {
        let place = self.place(generation, now);
        self.failures(place).slow.add(place.tag);
        self.trips(rules, generation, now)
    }

    /// Whether too many of the calls in the window failed, or were slow.
    fn trips(&self, rules: &Rules, generation: u64, now: u64) -> bool {
        let latest = now / self.length;
        let mut sums = Sums::default();
        let mut began = now;
        for stretch in latest.saturating_sub(BUCKETS - 1)..=latest {
            let counts = self.read(Self::nth(generation, stretch));
            if counts.admitted + counts.succeeded + counts.failed > 0 {
                began = began.min(stretch * self.length.get());
            }
            sums.admitted += counts.admitted;
            sums.succeeded += counts.succeeded;
            sums.failed += counts.failed;
            sums.slow += counts.slow;
        }
        // Failures come back faster than successes, so the calls still under way count as well:
        // else a few quick failures beside slow successes look like nothing but failures.
        let calls = sums.admitted.max(sums.succeeded + sums.failed);
        if now - began < nanos(Rules::EVIDENCE) || calls < u64::from(rules.minimum_calls) {
            return false;
        }
        significant(sums.failed, calls, rules.failure_rate)
            || rules.slow_calls.is_some_and(|(_, rate)| significant(sums.slow, calls, rate))
    }

    pub(super) fn read(&self, place: Place) -> Sums {
        let failures = self.failures(place);
        let mut sums = Sums {
            failed: failures.failed.read(place.tag),
            slow: failures.slow.read(place.tag),
            ..Sums::default()
        };
        for stripe in &self.calls {
            let calls = &stripe.0[usize::from(place.index)];
            sums.admitted += calls.admitted.read(place.tag);
            sums.succeeded += calls.succeeded.read(place.tag);
        }
        sums
    }
}

/// Whether `hits` of `calls` are two standard deviations above `rate`, or all of them: what luck
/// alone seldom reaches.
fn significant(hits: u64, calls: u64, rate: Ratio) -> bool {
    let (n, q) = (calls as f64, rate.as_f64());
    hits as f64 >= (q * n + 2.0 * (n * q * (1.0 - q)).sqrt()).min(n)
}

/// A tag in the upper half, a count in the lower.
///
/// One whose thread is held up inside of `add` until the bucket has changed hands twice, which is
/// a window's time or two transitions, may be taken from the second instead of the first.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    #[inline]
    fn add(&self, tag: u32) {
        // Relaxed: a figure for itself. The word it lands on says whether it landed in the right
        // bucket.
        if tag_of(self.0.load(Relaxed)) != tag {
            self.begin(tag);
        } else if tag_of(self.0.fetch_add(1, Relaxed)) != tag {
            // Relaxed: takes back what fell into the bucket's next stretch.
            self.0.fetch_sub(1, Relaxed);
            self.begin(tag);
        }
    }

    /// As `add`, where the bucket is not, or may no longer be, the one that is meant.
    #[cold]
    fn begin(&self, tag: u32) {
        // Relaxed: as above.
        let mut word = self.0.load(Relaxed);
        loop {
            if tag_of(word) == tag {
                // Relaxed: as above.
                if tag_of(self.0.fetch_add(1, Relaxed)) == tag {
                    return;
                }
                // Relaxed: as above.
                word = self.0.fetch_sub(1, Relaxed) - 1;
            } else {
                if is_newer(tag_of(word), tag) {
                    // A clock reading or a generation from a while ago: the bucket has moved on.
                    return;
                }
                let first = (u64::from(tag) << 32) | 1;
                // Relaxed: one of those who begin the bucket wins, the others add to it.
                match self.0.compare_exchange(word, first, Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(found) => word = found,
                }
            }
        }
    }

    /// Takes back one that was added under the same tag, if the bucket is still that one.
    fn subtract(&self, tag: u32) {
        let held = |word: u64| tag_of(word) == tag && word as u32 > 0;
        // Relaxed: the exchange takes it from this bucket or from none.
        let _ = self.0.fetch_update(Relaxed, Relaxed, |word| held(word).then(|| word - 1));
    }

    fn read(&self, tag: u32) -> u64 {
        // Relaxed: a figure for itself.
        let word = self.0.load(Relaxed);
        if tag_of(word) == tag { u64::from(word as u32) } else { 0 }
    }
}

/// Whether `found` has taken over from `tag`: a later generation, a shortly later stretch, or both.
const fn is_newer(found: u32, tag: u32) -> bool {
    let generations = (found >> 20).wrapping_sub(tag >> 20) % (1 << 12);
    let stretches = found.wrapping_sub(tag) % (1 << 20);
    found != tag && generations < 1 << 11 && stretches <= 10 * BUCKETS as u32
}

const fn tag_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Failures in a row: 8 bits of generation, 40 of the first one's millisecond, 16 of count.
#[derive(Debug, Default)]
struct Streak(AtomicU64);

impl Streak {
    #[inline]
    fn end(&self, generation: u64) {
        let own = |word: u64| word != 0 && word >> 56 == generation % (1 << 8);
        // Relaxed: only read as a rule, since a healthy dependency has none to end and writes would
        // make every core fetch the line.
        if own(self.0.load(Relaxed)) {
            // Relaxed: a figure for itself.
            let _ = self.0.fetch_update(Relaxed, Relaxed, |word| own(word).then_some(0));
        }
    }

    /// One more; true when it is long enough, in number and in time.
    fn lengthen(&self, generation: u64, now: u64) -> bool {
        let now = now / 1_000_000;
        let begun = ((generation % (1 << 8)) << 56) | ((now % (1 << 40)) << 16);
        let longer = |word: u64| {
            let same = word >> 56 == begun >> 56 && word & 0xffff > 0;
            if !same {
                begun | 1
            } else if word & 0xffff == 0xffff {
                word
            } else {
                word + 1
            }
        };
        // Relaxed: a figure for itself.
        let previous = self.0.fetch_update(Relaxed, Relaxed, |word| Some(longer(word)));
        let word = longer(previous.unwrap_or_else(|word| word));
        let since = now.saturating_sub((word >> 16) & ((1 << 40) - 1));
        let evidence = u128::from(since) >= Rules::EVIDENCE.as_millis();
        word & 0xffff >= u64::from(Rules::STREAK) && evidence
    }
}
