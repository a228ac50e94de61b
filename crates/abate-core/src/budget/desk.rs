//! Where a process asks for what other processes have earned.
//!
//! Only a retry that cannot be paid for from the process's own tokens, at its own pace, comes here:
//! it takes what was leased ahead or a ticket, and those are under a lock. What sets pace and floor
//! is in words of its own, read without it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::rules::{Denied, ONE};
use super::ticket::Ticket;
use crate::decay::fade;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard};

/// The part of the pace that a process keeps to itself while the fleet's pool paces the rest: both
/// at the full ratio would add up to twice of it.
pub(crate) const OWN_SHARE: f64 = 0.25;

/// Time constant of the fleet's call rate: three of the longest usual intervals between two messages.
pub(crate) const FLEET_RATE_TAU: Duration = Duration::from_secs(3);

/// After so many exchanges that failed in a row a process goes by its own, at the full ratio.
const ALONE_AFTER: u32 = 2;

/// After so many it asks for nothing any more, and only probes.
const SILENT_AFTER: u32 = 3;

/// After so many intervals without a sign of whoever carries the messages, nobody does.
const ABANDONED_AFTER: u32 = 3;

/// What a process has leased from the pool, and from when it may be sent.
#[derive(Debug, Default)]
struct Lease {
    /// Billionths of a token.
    tokens: u64,
    faded: u64,
    next: u64,
    gap: u64,
}

#[derive(Debug, Default)]
struct Queue {
    open: VecDeque<Arc<Ticket>>,
    lease: Lease,
    carrier: Option<Waker>,
    short_of: Shortage,
}

#[derive(Debug, Default, Clone, Copy)]
enum Shortage {
    #[default]
    Tokens,
    Pace,
}

/// What one exchange brought.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leased {
    /// Whole tokens.
    pub(crate) tokens: u32,
    /// From when the first of them may be sent, and how far the others are apart, in nanoseconds.
    pub(crate) first: u64,
    pub(crate) gap: u64,
    /// Whether the pool has tokens left: what was not granted then wanted pace.
    pub(crate) more: bool,
}

#[derive(Debug)]
pub(crate) struct Desk {
    interval: u64,
    tau: Duration,
    queue: Mutex<Queue>,
    failures: AtomicU32,
    /// When whoever carries the messages last showed itself.
    carried: AtomicU64,
    /// Whether this process goes by its own, as found at the last fold.
    alone: AtomicU32,
    /// Retries per second that it may then send besides, as the bits of an `f64`.
    floor: AtomicU64,
    /// Calls that the pool was not told of, fading, as the bits of an `f64`.
    calls: AtomicU64,
    asked: AtomicU32,
}

impl Desk {
    pub(super) fn new(interval: Duration, tau: Duration) -> Self {
        Self {
            interval: nanos(interval),
            tau,
            queue: Mutex::new(Queue::default()),
            failures: AtomicU32::new(0),
            carried: AtomicU64::new(0),
            alone: AtomicU32::new(0),
            floor: AtomicU64::new(0.0_f64.to_bits()),
            calls: AtomicU64::new(0.0_f64.to_bits()),
            asked: AtomicU32::new(0),
        }
    }

    /// The part of the ratio that this process may send, and what it may send besides.
    pub(super) fn pace(&self) -> (f64, f64) {
        // Relaxed: a word that stands for itself.
        match self.alone.load(Relaxed) {
            0 => (OWN_SHARE, 0.0),
            _ => (1.0, self.floor()),
        }
    }

    /// Tokens per second that come by themselves.
    pub(super) fn floor(&self) -> f64 {
        // Relaxed: a word that stands for itself.
        if self.alone.load(Relaxed) == 0 { 0.0 } else { f64::from_bits(self.floor.load(Relaxed)) }
    }

    /// Looks whether anyone answers still.
    pub(crate) fn judge(&self, now: u64) {
        // Relaxed: a word that stands for itself.
        let alone = self.failures.load(Relaxed) >= ALONE_AFTER || self.is_abandoned(now);
        // Relaxed: a word that stands for itself.
        self.alone.store(u32::from(alone), Relaxed);
    }

    /// Whether it is of any use to ask.
    pub(crate) fn answers(&self, now: u64) -> bool {
        // Relaxed: a word that stands for itself.
        self.failures.load(Relaxed) < SILENT_AFTER && !self.is_abandoned(now)
    }

    fn is_abandoned(&self, now: u64) -> bool {
        // Relaxed: a word that stands for itself.
        let silent = now.saturating_sub(self.carried.load(Relaxed));
        silent > self.interval.saturating_mul(u64::from(ABANDONED_AFTER))
    }

    /// Counts calls that came in over the last `dt`.
    pub(super) fn count(&self, calls: f64, dt: Duration) {
        let (kept, share) = fade(dt.as_secs_f64() / FLEET_RATE_TAU.as_secs_f64());
        let faded = |bits| Some((f64::from_bits(bits) * kept + calls * share).to_bits());
        // Relaxed: a word that stands for itself.
        let _ = self.calls.fetch_update(Relaxed, Relaxed, faded);
    }

    /// Counts a retry that is asked for, wherever it is paid from.
    pub(super) fn note_asked(&self) {
        // Relaxed: a word that stands for itself.
        self.asked.fetch_add(1, Relaxed);
    }

    /// A ticket for so many tokens: paid for at once if they are leased already.
    pub(super) fn ticket(&self, tokens: u32, now: u64) -> Arc<Ticket> {
        let mut queue = self.lock();
        queue.lease.fade(now, self.tau);
        while queue.open.front().is_some_and(|ticket| ticket.is_given_up()) {
            queue.open.pop_front();
        }
        let paid = queue.open.is_empty().then(|| queue.lease.take(tokens, now)).flatten();
        if let Some(from) = paid {
            return Arc::new(Ticket::paid(tokens, from));
        }
        let ticket = Arc::new(Ticket::open(tokens));
        queue.open.push_back(Arc::clone(&ticket));
        let carrier = queue.carrier.take();
        drop(queue);
        if let Some(carrier) = carrier {
            carrier.wake();
        }
        ticket
    }

    /// Why a ticket was not paid for.
    pub(super) fn denial(&self) -> Denied {
        match self.lock().short_of {
            Shortage::Tokens => Denied::Empty,
            Shortage::Pace => Denied::Pace,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing that holds it can panic half-way.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For whoever carries the messages.
impl Desk {
    /// Wakes `carrier` once, when the next ticket opens.
    pub(crate) fn wake_at_ticket(&self, carrier: &Waker) {
        self.lock().carrier = Some(carrier.clone());
    }

    pub(crate) fn note_carried(&self, now: u64) {
        // Relaxed: a word that stands for itself.
        self.carried.fetch_max(now, Relaxed);
    }

    pub(crate) fn note_failures(&self, failures: u32) {
        // Relaxed: a word that stands for itself.
        self.failures.store(failures, Relaxed);
    }

    /// What this process may send besides once it goes by its own.
    pub(crate) fn set_floor(&self, floor: f64) {
        // Relaxed: a word that stands for itself.
        self.floor.store(floor.to_bits(), Relaxed);
    }

    /// The calls that the pool is to be told of.
    pub(crate) fn take_calls(&self) -> f64 {
        // Relaxed: a word that stands for itself.
        f64::from_bits(self.calls.swap(0.0_f64.to_bits(), Relaxed))
    }

    /// The retries asked for since this was last called.
    pub(crate) fn take_asked(&self) -> u32 {
        // Relaxed: a word that stands for itself.
        self.asked.swap(0, Relaxed)
    }

    /// The whole tokens that open tickets wait for.
    pub(crate) fn open(&self) -> u64 {
        let mut queue = self.lock();
        queue.open.retain(|ticket| !ticket.is_given_up());
        queue.open.iter().map(|ticket| u64::from(ticket.tokens)).sum()
    }

    /// The leased tokens, in billionths.
    pub(crate) fn leased(&self, now: u64) -> u64 {
        let mut queue = self.lock();
        queue.lease.fade(now, self.tau);
        queue.lease.tokens
    }

    /// Takes back all that is leased.
    pub(crate) fn end_lease(&self, now: u64) -> u64 {
        let mut queue = self.lock();
        queue.lease.fade(now, self.tau);
        std::mem::take(&mut queue.lease.tokens)
    }

    /// Pays for those who wait longest, and keeps the rest for those who come.
    pub(crate) fn receive(&self, leased: Leased, now: u64) {
        let mut queue = self.lock();
        queue.lease.fade(now, self.tau);
        queue.lease.add(leased);
        while let Some(ticket) = queue.open.pop_front() {
            if ticket.is_given_up() {
                continue;
            }
            let (tokens, next) = (queue.lease.tokens, queue.lease.next);
            match queue.lease.take(ticket.tokens, now) {
                // Given up in this very moment: the next one gets them.
                Some(from) if !ticket.pay(from) => {
                    (queue.lease.tokens, queue.lease.next) = (tokens, next);
                }
                Some(_) => {}
                None => {
                    queue.open.push_front(ticket);
                    break;
                }
            }
        }
        queue.short_of = if leased.more { Shortage::Pace } else { Shortage::Tokens };
    }
}

impl Lease {
    fn fade(&mut self, now: u64, tau: Duration) {
        let dt = Duration::from_nanos(now.saturating_sub(self.faded));
        self.faded = self.faded.max(now);
        if self.tokens > 0 {
            let (kept, _) = fade(dt.as_secs_f64() / tau.as_secs_f64());
            self.tokens = (self.tokens as f64 * kept).floor() as u64;
        }
    }

    fn add(&mut self, leased: Leased) {
        if leased.tokens > 0 {
            self.tokens = self.tokens.saturating_add(u64::from(leased.tokens) * ONE);
            self.next = self.next.max(leased.first);
            self.gap = leased.gap;
        }
    }

    /// Takes so many tokens and says from when they may be sent.
    fn take(&mut self, tokens: u32, now: u64) -> Option<u64> {
        self.tokens = self.tokens.checked_sub(u64::from(tokens) * ONE)?;
        let from =
            self.next.max(now).saturating_add(self.gap.saturating_mul(u64::from(tokens) - 1));
        self.next = from.saturating_add(self.gap);
        Some(from)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
