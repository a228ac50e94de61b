use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::rng::{Seed, Stream};

/// Numbers drawn for one policy, at the most: a fraction of a second.
const DRAWS: usize = 1_000_000;

/// Calls drawn, where there are few retries: enough for a percentile to be off by less than 1 %.
const CALLS: usize = 100_000;

/// Retries looked at; what comes later is much the same.
const RETRIES: u32 = 1_000;

/// Retries looked at for the moment when the cap binds.
const HORIZON: u32 = 4_096;

/// How something is spread over calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spread {
    pub(super) median: Duration,
    pub(super) p99: Duration,
    /// The most that is possible, drawn or not.
    pub(super) most: Duration,
}

/// The wait before one retry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// From 1.
    pub(super) retry: u32,
    /// The curve.
    pub(super) bound: Duration,
    pub(super) least: Duration,
    pub(super) spread: Spread,
    /// All waits up to and with this one.
    pub(super) so_far: Spread,
}

/// From which retry on waits are held down by the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cap {
    /// This one, which the policy makes.
    Binds {
        from: u32,
    },
    /// This one would be the first, and the policy stops before it.
    Beyond {
        from: u32,
    },
    Never,
}

/// The waits of a policy when every attempt fails at once.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) waits: Vec<Wait>,
    /// Retries of the policy that [`Schedule::waits`] does not have.
    pub(super) left_out: u32,
    pub(super) cap: Cap,
}

impl Schedule {
    /// Waits of `retries` retries: drawn by the code that draws them in production, the same each
    /// time.
    pub(super) fn new(backoff: &Backoff, retries: u32) -> Self {
        let looked_at = retries.min(RETRIES);
        let calls = DRAWS.checked_div(looked_at as usize).map_or(0, |calls| calls.min(CALLS));
        let mut calls: Vec<_> = (0..calls as u64).map(Call::new).collect();
        let (mut drawn, mut sums) = (Vec::new(), Vec::new());
        let mut waits = Vec::new();
        let (mut least_before, mut most_before) = (Duration::ZERO, Duration::ZERO);
        let mut most_so_far = Duration::ZERO;
        for retry in 1..=looked_at {
            drawn.clear();
            sums.clear();
            for call in &mut calls {
                call.wait(backoff, retry);
                drawn.push(call.last);
                sums.push(call.sum);
            }
            let least = backoff.floor(retry, least_before);
            let most = backoff.ceiling(retry, most_before);
            (least_before, most_before) = (least, most);
            most_so_far = most_so_far.saturating_add(most);
            waits.push(Wait {
                retry,
                bound: backoff.bound(retry),
                least,
                spread: Spread::of(&mut drawn, most),
                so_far: Spread::of(&mut sums, most_so_far),
            });
        }
        Self { waits, left_out: retries - looked_at, cap: Cap::new(backoff, retries) }
    }

    /// All waits of a call together.
    pub(super) fn total(&self) -> Spread {
        const NONE: Spread =
            Spread { median: Duration::ZERO, p99: Duration::ZERO, most: Duration::ZERO };
        self.waits.last().map_or(NONE, |last| last.so_far)
    }

    /// The longest that all waits can be together, those left out included.
    pub(super) fn longest(&self) -> Duration {
        let last = self.waits.last().map_or(Duration::ZERO, |last| last.spread.most);
        self.total().most.saturating_add(last.saturating_mul(self.left_out))
    }
}

impl Spread {
    fn of(drawn: &mut [Duration], most: Duration) -> Self {
        let mut percentile = |percent: usize| {
            let at = (drawn.len() * percent).div_ceil(100).saturating_sub(1);
            if drawn.is_empty() { most } else { *drawn.select_nth_unstable(at).1 }
        };
        Self { median: percentile(50), p99: percentile(99), most }
    }
}

impl Cap {
    fn new(backoff: &Backoff, retries: u32) -> Self {
        let mut before = Duration::ZERO;
        let binds = |retry: &u32| {
            before = backoff.ceiling(*retry, before);
            before >= backoff.cap
        };
        match (1..=HORIZON).find(binds) {
            Some(from) if from <= retries => Self::Binds { from },
            Some(from) => Self::Beyond { from },
            None => Self::Never,
        }
    }
}

/// A call that fails at every attempt.
#[derive(Debug)]
struct Call {
    stream: Stream,
    last: Duration,
    sum: Duration,
}

impl Call {
    const fn new(number: u64) -> Self {
        let stream = Seed::new(12).stream(number);
        Self { stream, last: Duration::ZERO, sum: Duration::ZERO }
    }

    fn wait(&mut self, backoff: &Backoff, retry: u32) {
        (self.last, _) = backoff.delay(retry, self.last, None, &mut self.stream);
        self.sum = self.sum.saturating_add(self.last);
    }
}

#[cfg(test)]
mod tests {
    use abate_core::backoff::{Curve, Jitter};
    use abate_core::policy::defaults::BACKOFF;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn near(found: Duration, expected: f64) {
        let off = found.as_secs_f64() / expected - 1.0;
        assert!(off.abs() <= 0.02, "{found:?} for {expected} s");
    }

    #[test]
    fn full_jitter_of_five_attempts_is_as_published() {
        let total = Schedule::new(&BACKOFF, 4).total();
        near(total.median, 0.752);
        near(total.p99, 1.30);
        assert_eq!(total.most, SECOND * 3 / 2);
    }

    #[test]
    fn the_extremes_are_those_of_the_jitter_whatever_was_drawn() {
        let last = |jitter, retries| {
            let schedule = Schedule::new(&Backoff { jitter, ..BACKOFF }, retries);
            schedule.waits.last().map(|last| (last.least.as_millis(), last.spread.most.as_millis()))
        };
        assert_eq!(last(Jitter::None, 3), Some((400, 400)));
        assert_eq!(last(Jitter::Full, 3), Some((0, 400)));
        assert_eq!(last(Jitter::Equal, 3), Some((200, 400)));
        assert_eq!(last(Jitter::Decorrelated, 3), Some((100, 2_700)));
        assert_eq!(last(Jitter::Full, 0), None);
    }

    #[test]
    fn the_jobs_of_sidekiq_take_as_long_as_they_do() {
        let least: Duration =
            Schedule::new(&Backoff::SIDEKIQ_LEGACY, 25).waits.iter().map(|it| it.least).sum();
        // 1⁴ + … + 24⁴ + 25 × 15 s.
        assert_eq!(least.as_secs(), 1_763_020 + 375);
    }

    #[test]
    fn the_cap_binds_where_the_ceiling_reaches_it() {
        let cap =
            |curve, cap, retries| Schedule::new(&Backoff { curve, cap, ..BACKOFF }, retries).cap;
        let doubling = Curve::Exponential { factor: 2.0 };
        assert_eq!(cap(doubling, 10 * SECOND, 4), Cap::Beyond { from: 8 });
        assert_eq!(cap(doubling, SECOND * 2 / 5, 4), Cap::Binds { from: 3 });
        assert_eq!(cap(Curve::Fixed, SECOND, 4), Cap::Never);
    }

    #[test]
    fn attempts_without_end_are_no_work_without_end() {
        let schedule = Schedule::new(&BACKOFF, u32::MAX - 1);
        assert_eq!(schedule.waits.len() as u32 + schedule.left_out, u32::MAX - 1);
        assert!(schedule.longest() > 4_000_000_000 * SECOND);
    }
}
