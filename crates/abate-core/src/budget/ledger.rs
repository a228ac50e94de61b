//! The figures behind a budget, each in an atomic word of its own.
//!
//! Orderings are relaxed throughout: every word stands for itself, none publishes another, and
//! what two threads fold or take at once is settled by the compare-exchange on the word concerned.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::rules::{Denied, Earn, LONGEST_SLOT_WAIT, ONE, RATE_TAU, Rules, SHORTEST_ATTEMPT, TAU};
use crate::classify::Transient;
use crate::deadline::nanos_since;
use crate::decay::fade;
use crate::striped::{Padded, STRIPES, stripe};
use crate::sync::{AtomicU32, AtomicU64};

/// A call in the upper half of the counts, a success in the lower.
const CALL: u64 = 1 << 32;

/// A call folds when the last fold is this old: often enough that the pace never rests on
/// traffic that has gone, seldom enough to be free.
const CALL_FOLDS_AFTER: u64 = 1_000_000_000;

/// The first of so many calls of a thread looks how old that is: what waits for it is too few to
/// matter, and the look costs more than the count.
const CALLS_A_LOOK: u64 = 16;

#[derive(Debug)]
pub(crate) struct Ledger {
    rules: Rules,
    base: Instant,
    /// Calls and successes since the last fold, for threads apart.
    counts: [Padded<AtomicU64>; STRIPES],
    /// When the last fold was, in nanoseconds from `base`.
    folded: AtomicU64,
    /// Billionths of a token.
    tokens: AtomicU64,
    /// Calls per second, as the bits of an `f64`; written by folds alone.
    rate: AtomicU64,
    /// Billionths of a slot that are taken and have not drained yet.
    level: AtomicU64,
    /// Granted retries that will ask for their slot within a second.
    pending: AtomicU32,
    /// Where the fleet is asked, if there is one.
    desk: Option<Arc<Desk>>,
}

impl Ledger {
    pub(super) fn new(rules: Rules, desk: Option<Arc<Desk>>, now: Instant) -> Self {
        Self {
            rules,
            base: now,
            counts: Default::default(),
            folded: AtomicU64::new(0),
            tokens: AtomicU64::new(billionths(rules.start)),
            rate: AtomicU64::new(0.0_f64.to_bits()),
            level: AtomicU64::new(0),
            pending: AtomicU32::new(0),
            desk,
        }
    }

    pub(crate) fn desk(&self) -> Option<&Desk> {
        self.desk.as_deref()
    }

    #[inline]
    pub(super) fn count_call(&self, now: Instant) {
        let counts = &self.counts[stripe()].0;
        // Relaxed: a figure to look at.
        if (counts.load(Relaxed) / CALL).is_multiple_of(CALLS_A_LOOK) {
            self.fold_if_old(now);
        }
        // Relaxed: a count, read by a swap alone.
        counts.fetch_add(CALL, Relaxed);
    }

    #[cold]
    fn fold_if_old(&self, now: Instant) {
        let now = self.since_base(now);
        // Relaxed: a stale moment only makes one more caller try the election in `fold_at`.
        if now >= self.folded.load(Relaxed).saturating_add(CALL_FOLDS_AFTER) {
            self.fold_at(now);
        }
    }

    #[inline]
    pub(super) fn earn(&self) {
        // Relaxed: a count, read by a swap alone.
        self.counts[stripe()].0.fetch_add(1, Relaxed);
    }

    /// Brings tokens, rate and level up to `now`.
    pub(crate) fn fold(&self, now: Instant) {
        self.fold_at(self.since_base(now));
    }

    #[cold]
    fn fold_at(&self, now: u64) {
        // Relaxed: the exchange elects one folder per stretch of time; whoever loses, or comes
        // with an older clock reading, goes on with the figures as they stand.
        let last = self.folded.load(Relaxed);
        let elected =
            now >= last && self.folded.compare_exchange(last, now, Relaxed, Relaxed).is_ok();
        if !elected {
            return;
        }
        // Relaxed: the swap takes each count exactly once.
        let counts = self.counts.each_ref().map(|Padded(counts)| {
            if counts.load(Relaxed) == 0 { 0 } else { counts.swap(0, Relaxed) }
        });
        let calls: u64 = counts.iter().map(|counts| counts / CALL).sum();
        let earning = match self.rules.earn {
            Earn::PerSuccess => counts.iter().map(|counts| counts % CALL).sum(),
            Earn::PerCall => calls,
        };
        let calls = calls as f64;
        let earned = earning * u64::from(self.rules.ratio.parts_per_billion());
        let dt = Duration::from_nanos(now - last);

        let (kept, share) = fade_over(dt, TAU);
        let minted = earned as f64 * share + self.floor() * dt.as_secs_f64() * share * ONE as f64;
        update(&self.tokens, |tokens| {
            if dt.is_zero() {
                tokens.saturating_add(earned)
            } else {
                (tokens as f64 * kept + minted).round() as u64
            }
        });

        let (kept, share) = fade_over(dt, RATE_TAU);
        update(&self.rate, |rate| {
            let rate = f64::from_bits(rate) * kept + calls / RATE_TAU.as_secs_f64() * share;
            rate.to_bits()
        });

        let drained = billionths(self.pace() * dt.as_secs_f64());
        update(&self.level, |level| level.saturating_sub(drained));

        if let Some(desk) = &self.desk {
            desk.count(calls, dt);
            desk.judge(now);
        }
    }

    pub(crate) fn tokens(&self) -> f64 {
        // Relaxed: a figure to look at.
        self.tokens.load(Relaxed) as f64 / ONE as f64
    }

    /// Slots per second.
    pub(super) fn pace(&self) -> f64 {
        let (share, floor) = self.desk.as_deref().map_or((1.0, self.rules.floor), Desk::pace);
        self.rules.ratio.as_f64() * self.rate() * share + floor
    }

    /// Calls per second.
    pub(crate) fn rate(&self) -> f64 {
        // Relaxed: a figure to look at.
        f64::from_bits(self.rate.load(Relaxed))
    }

    /// Tokens per second that come by themselves.
    fn floor(&self) -> f64 {
        self.desk.as_deref().map_or(self.rules.floor, Desk::floor)
    }

    /// What a retry because of `why` costs, in billionths of a token.
    pub(super) fn cost(&self, why: Transient) -> u64 {
        billionths(self.rules.costs.of(why))
    }

    pub(super) fn take_tokens(&self, cost: u64) -> bool {
        // Relaxed: the exchange never takes more than there is.
        self.tokens.fetch_update(Relaxed, Relaxed, |tokens| tokens.checked_sub(cost)).is_ok()
    }

    /// Takes what is above `hold`, in whole `unit`s and at `most` so many of them: in billionths.
    pub(crate) fn take_above(&self, hold: u64, unit: u64, most: u64) -> u64 {
        let mut taken = 0;
        update(&self.tokens, |tokens| {
            taken = (tokens.saturating_sub(hold) / unit).min(most) * unit;
            tokens - taken
        });
        taken
    }

    pub(crate) fn return_tokens(&self, cost: u64) {
        update(&self.tokens, |tokens| tokens.saturating_add(cost));
    }

    /// Announces a retry that will ask for its slot `delay` from now, if a slot would be had then.
    pub(super) fn announce(&self, delay: Duration, left: Duration) -> Result<bool, Denied> {
        let near = delay <= LONGEST_SLOT_WAIT;
        // Relaxed: a count; taken before the question so that two who ask at once see each other.
        let ahead = if near { self.pending.fetch_add(1, Relaxed) } else { 0 };
        let drained = billionths(self.pace() * delay.as_secs_f64());
        // Relaxed: the slot itself is taken by an exchange, later.
        let level = self.level.load(Relaxed).saturating_add(u64::from(ahead) * ONE);
        let answer = self.wait(level.saturating_sub(drained), left);
        if near && answer.is_err() {
            self.withdraw_announcement();
        }
        answer.map(|_| near)
    }

    pub(super) fn withdraw_announcement(&self) {
        // Relaxed: a count.
        self.pending.fetch_sub(1, Relaxed);
    }

    /// Takes a slot and says how long to wait for it.
    pub(super) fn take_slot(&self, left: Duration) -> Result<Duration, Denied> {
        let mut answer = Ok(Duration::ZERO);
        // Relaxed: question and answer are one exchange on one word.
        let _ = self.level.fetch_update(Relaxed, Relaxed, |level| {
            answer = self.wait(level, left);
            answer.is_ok().then(|| level.saturating_add(ONE))
        });
        answer
    }

    pub(super) fn return_slot(&self) {
        update(&self.level, |level| level.saturating_sub(ONE));
    }

    /// Whether a wait is worth it, and leaves an attempt its time.
    pub(super) fn worth(wait: Duration, left: Duration) -> Result<Duration, Denied> {
        if wait > LONGEST_SLOT_WAIT {
            Err(Denied::Pace)
        } else if !wait.is_zero() && wait > left.saturating_sub(SHORTEST_ATTEMPT) {
            Err(Denied::Deadline)
        } else {
            Ok(wait)
        }
    }

    /// How long until `level` has drained to what may be sent at once.
    fn wait(&self, level: u64, left: Duration) -> Result<Duration, Denied> {
        let above = level.saturating_sub(u64::from(self.rules.burst) * ONE);
        if above == 0 {
            return Ok(Duration::ZERO);
        }
        // A pace of zero makes this infinite, which no duration holds.
        let wait = Duration::try_from_secs_f64(above as f64 / ONE as f64 / self.pace());
        wait.map_or(Err(Denied::Pace), |wait| Self::worth(wait, left))
    }

    /// A moment in nanoseconds of the ledger.
    pub(crate) fn since_base(&self, now: Instant) -> u64 {
        nanos_since(self.base, now)
    }
}

fn fade_over(dt: Duration, tau: Duration) -> (f64, f64) {
    fade(dt.as_secs_f64() / tau.as_secs_f64())
}

fn billionths(number: f64) -> u64 {
    (number * ONE as f64).round() as u64
}

fn update(word: &AtomicU64, mut change: impl FnMut(u64) -> u64) {
    // Relaxed: the exchange repeats until the change applies to what is there.
    let _ = word.fetch_update(Relaxed, Relaxed, |value| Some(change(value)));
}
