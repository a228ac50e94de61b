use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ledger::Ledger;
use super::rules::Denied;
use crate::classify::Transient;

/// A retry that was granted: it holds a token, and once asked for also a slot.
///
/// # Cancel safety
///
/// Dropped before [`Grant::sent`], it gives back whatever it holds.
#[must_use = "a grant that is dropped gives its token back"]
pub struct Grant {
    ledger: Arc<Ledger>,
    cost: u64,
    holds: Holds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// A token, and whether it is announced among those soon to ask for a slot.
    Token { announced: bool },
    /// A token and a slot.
    Slot,
    /// Nothing any more: the retry is on its way.
    Nothing,
}

impl Grant {
    pub(super) fn ask(
        ledger: Arc<Ledger>,
        now: Instant,
        delay: Duration,
        left: Duration,
        why: Transient,
    ) -> Result<Self, Denied> {
        let cost = ledger.cost(why);
        ledger.fold(now);
        let announced = ledger.announce(delay, left)?;
        if ledger.take_tokens(cost) {
            Ok(Self { ledger, cost, holds: Holds::Token { announced } })
        } else {
            if announced {
                ledger.withdraw_announcement();
            }
            Err(Denied::Empty)
        }
    }

    /// Takes a slot, at the moment the backoff has ended: says how long to wait before sending.
    ///
    /// # Errors
    ///
    /// [`Denied`] when the wait would be too long; the grant holds its token still, so drop it.
    pub fn slot(&mut self, now: Instant, left: Duration) -> Result<Duration, Denied> {
        let Holds::Token { announced } = self.holds else { return Ok(Duration::ZERO) };
        self.ledger.fold(now);
        if announced {
            self.ledger.withdraw_announcement();
        }
        self.holds = Holds::Token { announced: false };
        let wait = self.ledger.take_slot(left)?;
        self.holds = Holds::Slot;
        Ok(wait)
    }

    /// The retry is on its way: token and slot are spent for good.
    pub fn sent(mut self) {
        if let Holds::Token { announced: true } = self.holds {
            self.ledger.withdraw_announcement();
        }
        self.holds = Holds::Nothing;
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        match self.holds {
            Holds::Token { announced } => {
                if announced {
                    self.ledger.withdraw_announcement();
                }
                self.ledger.return_tokens(self.cost);
            }
            Holds::Slot => {
                self.ledger.return_slot();
                self.ledger.return_tokens(self.cost);
            }
            Holds::Nothing => {}
        }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant").field("holds", &self.holds).finish_non_exhaustive()
    }
}
