//! Has the dependency asked to be left alone? One answer's wish, held for all other calls.
//!
//! A 429 or 503 with a hint says when the server wants to be called again. The call that got it
//! waits; this makes the others wait as well, or turns them away, and lets them go staggered when
//! the time has come, so that they do not arrive in one moment.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::deadline::nanos;
use crate::rng::Streams;

/// The least time over which those that were held are spread when they go.
///
/// A tenth of a second: a hint of one second would otherwise let them all go within a quarter of it,
/// a hint of a few milliseconds all at once.
pub const LEAST_SPREAD: Duration = Duration::from_millis(100);

/// When a dependency may be called again.
#[derive(Debug)]
pub struct Cooldown {
    base: Instant,
    /// Nanoseconds from the base; 0 where nothing was ever asked for.
    until: AtomicU64,
    /// Nanoseconds over which those that were held go.
    spread: AtomicU64,
}

/// The dependency wants to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cooling {
    /// Until then.
    pub until: Instant,
    /// When this call may go: a little later, each at another time.
    pub turn: Instant,
}

impl Cooldown {
    /// One that begins at `now`, with nothing asked for.
    #[must_use]
    pub const fn new(now: Instant) -> Self {
        Self { base: now, until: AtomicU64::new(0), spread: AtomicU64::new(0) }
    }

    /// The dependency asked at `now` to be left alone for `delay`. An earlier wish that lasts
    /// longer stands.
    pub fn note(&self, delay: Duration, now: Instant) {
        let asked = nanos(now.saturating_duration_since(self.base).saturating_add(delay));
        // Relaxed: each word stands for itself; a spread of another moment is as good as any.
        if self.until.fetch_max(asked, Relaxed) < asked {
            // Relaxed: as above.
            self.spread.store(nanos((delay / 4).max(LEAST_SPREAD)), Relaxed);
        }
    }

    /// Whether a call at `now` has to wait; `None` lets it go.
    #[inline]
    pub fn ask(&self, now: Instant, streams: &Streams) -> Option<Cooling> {
        // Relaxed: whether a call just before or just after a wish goes is no matter.
        let until = self.until.load(Relaxed);
        if until == 0 { None } else { self.cooling(until, now, streams) }
    }

    #[cold]
    fn cooling(&self, until: u64, now: Instant, streams: &Streams) -> Option<Cooling> {
        let until = self.base.checked_add(Duration::from_nanos(until))?;
        if until <= now {
            return None;
        }
        // Relaxed: as in `note`.
        let spread = Duration::from_nanos(self.spread.load(Relaxed));
        let turn = until.checked_add(streams.next().up_to(spread)).unwrap_or(until);
        Some(Cooling { until, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seed;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::disallowed_methods, reason = "any moment to start from")]
    fn moment() -> Instant {
        Instant::now()
    }

    #[test]
    fn nothing_asked_for_holds_nothing() {
        let now = moment();
        let streams = Streams::new(Seed::new(1));
        assert_eq!(Cooldown::new(now).ask(now, &streams), None);
    }

    #[test]
    fn a_wish_holds_until_its_time_and_then_lets_go_staggered() {
        let now = moment();
        let (cooldown, streams) = (Cooldown::new(now), Streams::new(Seed::new(1)));
        cooldown.note(2 * SECOND, now);
        let held: Vec<_> = (0..1_000).map(|_| cooldown.ask(now, &streams).unwrap()).collect();
        assert!(held.iter().all(|it| it.until == now + 2 * SECOND));
        let turns = held.iter().map(|it| it.turn);
        let (first, last) = (turns.clone().min().unwrap(), turns.max().unwrap());
        assert!(first >= now + 2 * SECOND && last <= now + 2 * SECOND + SECOND / 2);
        assert!(last - first > SECOND / 3, "spread over half a second");
        assert_eq!(cooldown.ask(now + 2 * SECOND, &streams), None);
    }

    #[test]
    fn the_longest_wish_stands() {
        let now = moment();
        let (cooldown, streams) = (Cooldown::new(now), Streams::new(Seed::new(1)));
        cooldown.note(5 * SECOND, now);
        cooldown.note(SECOND, now + SECOND);
        assert_eq!(cooldown.ask(now, &streams).unwrap().until, now + 5 * SECOND);
        cooldown.note(9 * SECOND, now + SECOND);
        assert_eq!(cooldown.ask(now, &streams).unwrap().until, now + 10 * SECOND);
    }

    #[test]
    fn extremes_saturate() {
        let now = moment();
        let (cooldown, streams) = (Cooldown::new(now), Streams::new(Seed::new(1)));
        cooldown.note(Duration::ZERO, now);
        assert_eq!(cooldown.ask(now, &streams), None);
        cooldown.note(Duration::MAX, now);
        assert!(cooldown.ask(now, &streams).is_some(), "584 years");
    }
}
