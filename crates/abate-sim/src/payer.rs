//! Who pays for retries: the shipped budget, or one of other people's, for comparison.

use std::time::{Duration, Instant};

use abate_core::budget::Budget;
use abate_core::policy::Policy;

use crate::law::nanos;
use crate::model::Payment;

/// One process's payer.
#[derive(Debug)]
pub(crate) enum Payer {
    Free,
    Budget(Budget),
    Bucket(Bucket),
    Window(Window),
}

/// A bucket of tokens.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    size: f64,
    per_call: f64,
    per_success: f64,
}

/// tower's budget: ten slots of time, of which the oldest is written over. What is counted while a
/// slot lasts is put into it at its end.
#[derive(Debug)]
pub(crate) struct Window {
    slots: [i64; Self::SLOTS],
    index: usize,
    /// When the present slot began.
    began: u64,
    slot: u64,
    present: i64,
    reserve: i64,
    cost: i64,
    on_success: bool,
}

impl Payer {
    pub(crate) fn new(payment: Payment, policy: &Policy, start: Instant) -> Self {
        match payment {
            Payment::Free => Self::Free,
            Payment::Budget => Self::Budget(Budget::new(policy.budget(), start)),
            Payment::Bucket { ratio, on_success, size } => {
                let ratio = ratio.as_f64();
                let (per_call, per_success) = if on_success { (0.0, ratio) } else { (ratio, 0.0) };
                Self::Bucket(Bucket { tokens: size, size, per_call, per_success })
            }
            Payment::Window { calls_per_retry, floor, window, on_success } => {
                Self::Window(Window::new(calls_per_retry, floor, window, on_success))
            }
        }
    }

    /// The shipped budget, which a session deals with itself.
    pub(crate) const fn budget(&self) -> Option<&Budget> {
        if let Self::Budget(budget) = self { Some(budget) } else { None }
    }

    /// A call begins.
    pub(crate) fn count_call(&mut self, now: u64) {
        match self {
            Self::Free | Self::Budget(_) => {}
            Self::Bucket(bucket) => bucket.add(bucket.per_call),
            Self::Window(window) if window.on_success => {}
            Self::Window(window) => window.deposit(now),
        }
    }

    /// A call succeeds.
    pub(crate) fn earn(&mut self, now: u64) {
        match self {
            Self::Free | Self::Budget(_) => {}
            Self::Bucket(bucket) => bucket.add(bucket.per_success),
            Self::Window(window) if window.on_success => window.deposit(now),
            Self::Window(_) => {}
        }
    }

    /// Pays for a retry that a session granted, if it was not the session that paid.
    pub(crate) fn withdraw(&mut self, now: u64) -> bool {
        match self {
            Self::Free | Self::Budget(_) => true,
            Self::Bucket(bucket) => bucket.take(),
            Self::Window(window) => window.withdraw(now),
        }
    }
}

impl Bucket {
    /// What sums of tenths are short of a whole token by.
    const ROUNDING: f64 = 1e-9;

    fn add(&mut self, tokens: f64) {
        self.tokens = (self.tokens + tokens).min(self.size);
    }

    fn take(&mut self) -> bool {
        let enough = self.tokens >= 1.0 - Self::ROUNDING;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

impl Window {
    const SLOTS: usize = 10;

    fn new(calls_per_retry: u32, floor: u32, window: Duration, on_success: bool) -> Self {
        let cost = i64::from(calls_per_retry);
        let whole = i64::try_from(window.as_secs()).unwrap_or(i64::MAX);
        Self {
            slots: [0; Self::SLOTS],
            index: 0,
            began: 0,
            slot: nanos(window) / Self::SLOTS as u64,
            present: 0,
            reserve: i64::from(floor).saturating_mul(whole).saturating_mul(cost),
            cost,
            on_success,
        }
    }

    fn deposit(&mut self, now: u64) {
        self.expire(now);
        self.present += 1;
    }

    fn withdraw(&mut self, now: u64) -> bool {
        self.expire(now);
        let held = self.present + self.slots.iter().sum::<i64>() + self.reserve;
        let enough = held >= self.cost;
        if enough {
            self.present -= self.cost;
        }
        enough
    }

    fn expire(&mut self, now: u64) {
        let mut age = now.saturating_sub(self.began);
        if age < self.slot {
            return;
        }
        self.slots[self.index] = std::mem::take(&mut self.present);
        self.index = (self.index + 1) % Self::SLOTS;
        while age > self.slot {
            self.slots[self.index] = 0;
            age -= self.slot;
            self.index = (self.index + 1) % Self::SLOTS;
        }
        self.began = now;
    }
}
