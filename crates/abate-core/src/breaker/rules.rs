use std::time::{Duration, Instant};

use crate::classify::Classifier;
use crate::ratio::Ratio;

/// What a breaker trips on and how it comes back. `Policy` checks the values and hands them over.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Rules {
    /// What counts as a failure.
    pub classifier: Classifier,
    /// How far back outcomes count.
    pub window: Duration,
    /// The share of failures that trips, once it is significant.
    pub failure_rate: Ratio,
    /// The least number of calls in the window that a rate is judged from.
    pub minimum_calls: u32,
    /// The first open time.
    pub open_for: Duration,
    /// The longest open time.
    pub open_at_most: Duration,
    /// Probes let through in half-open.
    pub probes: u32,
    /// How long a call takes that counts as slow, and the share of them that trips. Off unless set.
    pub slow_calls: Option<(Duration, Ratio)>,
    /// The timeout of an attempt, where one is known: leases and slow start outlast it.
    pub attempt_timeout: Option<Duration>,
}

impl Rules {
    /// Five seconds: long enough for a rate, short enough that health is forgotten when it ends.
    pub const WINDOW: Duration = Duration::from_secs(5);
    /// Half: below it more calls succeed than fail, and refusing them would do the harm itself.
    pub const FAILURE_RATE: u32 = 50;
    /// Ten: with fewer, a rate is no rate; the streak serves there.
    pub const MINIMUM_CALLS: u32 = 10;
    /// Two seconds: about the time in which a restarted process answers again.
    pub const OPEN_FOR: Duration = Duration::from_secs(2);
    /// Thirty seconds: beyond it a dependency would be back unnoticed.
    pub const OPEN_AT_MOST: Duration = Duration::from_secs(30);
    /// Three: one could be luck, and each costs a caller when it fails.
    pub const PROBES: u32 = 3;
    /// Open this often in a row before the open time begins to double.
    pub const STEADY_OPENINGS: u32 = 4;
    /// Failures in a row that trip it, without regard to a rate.
    pub const STREAK: u32 = 10;
    /// The time that evidence must span before it trips, by rate or by streak: a dependency that
    /// fails for less is better served by retries.
    pub const EVIDENCE: Duration = Duration::from_secs(2);
    /// What a lease has beyond the attempt timeout.
    pub const LEASE_SLACK: Duration = Duration::from_secs(1);
    /// The attempt timeout taken for granted where none is known.
    pub const ASSUMED_TIMEOUT: Duration = Duration::from_secs(10);
    /// Slow start ends when nothing was refused for this long.
    pub const CALM: Duration = Duration::from_secs(1);

    /// How long a probe may take before it counts as a failure.
    pub(super) fn lease(&self) -> Duration {
        self.timeout().saturating_add(Self::LEASE_SLACK)
    }

    /// How long slow start lasts at the most: hung calls must have failed by then.
    pub(super) fn longest_slow_start(&self) -> Duration {
        self.timeout().max(Self::ASSUMED_TIMEOUT).saturating_add(Self::CALM)
    }

    /// A call cancelled by its caller after this long counts as a failure.
    pub(super) fn slow(&self) -> Duration {
        self.slow_calls.map_or(self.timeout() / 2, |(slow, _)| slow)
    }

    /// Whether a call from `sent` to `now` counts as slow.
    #[inline]
    pub(super) fn is_slow(&self, sent: Instant, now: Instant) -> bool {
        let took = || now.saturating_duration_since(sent);
        self.slow_calls.is_some_and(|(slow, _)| took() >= slow)
    }

    /// The failures among the probes that open it again.
    pub(super) fn opening_failures(&self) -> u32 {
        self.share_of_probes(self.failure_rate)
    }

    /// The slow ones among the probes that open it again.
    pub(super) fn opening_slow(&self) -> u32 {
        self.slow_calls.map_or(u32::MAX, |(_, rate)| self.share_of_probes(rate))
    }

    fn share_of_probes(&self, rate: Ratio) -> u32 {
        let share = u64::from(self.probes) * u64::from(rate.parts_per_billion());
        let probes = share.div_ceil(u64::from(Ratio::ONE.parts_per_billion()));
        u32::try_from(probes).unwrap_or(u32::MAX).max(1)
    }

    /// The open time, before jitter, of the `opening`th time in a row (from 1).
    pub(super) fn open_time(&self, opening: u32) -> Duration {
        let doublings = opening.saturating_sub(Self::STEADY_OPENINGS).min(31);
        self.open_for.saturating_mul(1 << doublings).min(self.open_at_most)
    }

    fn timeout(&self) -> Duration {
        self.attempt_timeout.unwrap_or(Self::ASSUMED_TIMEOUT)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            classifier: Classifier::default(),
            window: Self::WINDOW,
            failure_rate: Ratio::from_percent(Self::FAILURE_RATE).unwrap_or(Ratio::ONE),
            minimum_calls: Self::MINIMUM_CALLS,
            open_for: Self::OPEN_FOR,
            open_at_most: Self::OPEN_AT_MOST,
            probes: Self::PROBES,
            slow_calls: None,
            attempt_timeout: None,
        }
    }
}
