use std::sync::atomic::Ordering::Relaxed;

use crate::sync::AtomicU64;

const OPEN: u64 = u64::MAX;
const GIVEN_UP: u64 = u64::MAX - 1;

/// A retry's place in the queue for what other processes have earned.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Whole tokens that it takes.
    pub(super) tokens: u32,
    /// Open, given up, or the moment from which it may be sent.
    word: AtomicU64,
}

/// How a ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// Paid for, and to be sent at this moment, in nanoseconds of the ledger.
    From(u64),
}

impl Ticket {
    pub(super) const MOST: u64 = GIVEN_UP - 1;

    pub(super) fn open(tokens: u32) -> Self {
        Self { tokens, word: AtomicU64::new(OPEN) }
    }

    pub(super) fn paid(tokens: u32, from: u64) -> Self {
        Self { tokens, word: AtomicU64::new(from.min(Self::MOST)) }
    }

    /// Pays for it; `false` if whoever held it no longer waits.
    pub(super) fn pay(&self, from: u64) -> bool {
        // Relaxed: the word stands for itself, and its exchange settles who wins.
        self.word.compare_exchange(OPEN, from.min(Self::MOST), Relaxed, Relaxed).is_ok()
    }

    pub(super) fn standing(&self) -> Standing {
        // Relaxed: the word stands for itself, and its exchange settles who wins.
        match self.word.load(Relaxed) {
            OPEN | GIVEN_UP => Standing::Open,
            from => Standing::From(from),
        }
    }

    pub(super) fn is_given_up(&self) -> bool {
        // Relaxed: the word stands for itself, and its exchange settles who wins.
        self.word.load(Relaxed) == GIVEN_UP
    }

    /// Gives it up; whether it had been paid for, so that the tokens are to be given back.
    #[must_use = "tokens would be lost"]
    pub(super) fn give_up(&self) -> bool {
        // Relaxed: the word stands for itself, and its exchange settles who wins.
        self.word.swap(GIVEN_UP, Relaxed) < GIVEN_UP
    }
}
