use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::ledger::Ledger;
use super::rules::{Denied, ONE, SHORTEST_ATTEMPT};
use super::ticket::{Standing, Ticket};
use crate::classify::Transient;

/// The least time from a ticket's opening to the first look at it: a message may leave 50 ms after
/// the last, and comes back a round trip later. Less, and full jitter's short waits would be denied.
const TICKET_WAIT: Duration = Duration::from_millis(100);

/// How much longer a retry waits, once, for a ticket that is open still.
const TICKET_EXTENSION: Duration = Duration::from_millis(100);

/// A retry that was granted: it holds a token, and once asked for also a slot. In a fleet it may hold
/// a ticket for another process's token instead.
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

#[derive(Debug)]
enum Holds {
    /// A token, and whether it is announced among those soon to ask for a slot.
    Token { announced: bool },
    /// A token and a slot.
    Slot,
    /// A place in the queue for a token and a slot, and when it is looked at next.
    Ticket { ticket: Arc<Ticket>, look: Instant, extended: bool },
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
        match (Self::ask_here(&ledger, cost, delay, left), ledger.desk()) {
            (Ok(announced), desk) => {
                desk.inspect(|desk| desk.note_asked());
                Ok(Self { ledger, cost, holds: Holds::Token { announced } })
            }
            (Err(denied), None) => Err(denied),
            (Err(denied), Some(desk)) => {
                desk.note_asked();
                let holds = Self::ask_fleet(&ledger, desk, cost, now, delay, left).ok_or(denied)?;
                Ok(Self { ledger, cost, holds })
            }
        }
    }

    fn ask_here(
        ledger: &Ledger,
        cost: u64,
        delay: Duration,
        left: Duration,
    ) -> Result<bool, Denied> {
        let announced = ledger.announce(delay, left)?;
        if ledger.take_tokens(cost) {
            return Ok(announced);
        }
        if announced {
            ledger.withdraw_announcement();
        }
        Err(Denied::Empty)
    }

    /// A ticket, if anyone answers, and if there is time to wait for the answer.
    fn ask_fleet(
        ledger: &Ledger,
        desk: &Desk,
        cost: u64,
        now: Instant,
        delay: Duration,
        left: Duration,
    ) -> Option<Holds> {
        let at = ledger.since_base(now);
        let wait = TICKET_WAIT.max(delay);
        if !desk.answers(at) || wait - delay > left.saturating_sub(SHORTEST_ATTEMPT) {
            return None;
        }
        let ticket = desk.ticket(whole_tokens(cost), at);
        let look = now.checked_add(wait)?;
        Some(Holds::Ticket { ticket, look, extended: false })
    }

    /// Takes a slot, at the moment the backoff has ended, and says how long to wait. After a wait it
    /// is to be asked again, until it says zero: then the retry may be sent.
    ///
    /// A process by itself is never asked more than twice; one in a fleet may have to wait for an
    /// answer first.
    ///
    /// # Errors
    ///
    /// [`Denied`] when the wait would be too long; the grant holds its token still, so drop it.
    pub fn slot(&mut self, now: Instant, left: Duration) -> Result<Duration, Denied> {
        match &mut self.holds {
            Holds::Token { announced } => {
                self.ledger.fold(now);
                if std::mem::take(announced) {
                    self.ledger.withdraw_announcement();
                }
                let wait = self.ledger.take_slot(left)?;
                self.holds = Holds::Slot;
                Ok(wait)
            }
            Holds::Ticket { ticket, look, extended } => {
                let at = self.ledger.since_base(now);
                let wait = match ticket.standing() {
                    Standing::From(from) => Duration::from_nanos(from.saturating_sub(at)),
                    Standing::Open if now < *look => look.duration_since(now),
                    Standing::Open if !*extended => {
                        *extended = true;
                        *look = now + TICKET_EXTENSION;
                        TICKET_EXTENSION
                    }
                    Standing::Open => return Err(self.denial()),
                };
                Ledger::worth(wait, left)
            }
            Holds::Slot | Holds::Nothing => Ok(Duration::ZERO),
        }
    }

    fn denial(&self) -> Denied {
        self.ledger.desk().map_or(Denied::Empty, Desk::denial)
    }

    /// The retry is on its way: token and slot are spent for good.
    pub fn sent(mut self) {
        match std::mem::replace(&mut self.holds, Holds::Nothing) {
            Holds::Token { announced: true } => self.ledger.withdraw_announcement(),
            Holds::Ticket { ticket, .. } => {
                // Whole tokens were brought; what the retry does not cost goes on in this process.
                if ticket.give_up() {
                    self.ledger.return_tokens(billionths(ticket.tokens).saturating_sub(self.cost));
                }
            }
            Holds::Token { announced: false } | Holds::Slot | Holds::Nothing => {}
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        match &self.holds {
            Holds::Token { announced } => {
                if *announced {
                    self.ledger.withdraw_announcement();
                }
                self.ledger.return_tokens(self.cost);
            }
            Holds::Slot => {
                self.ledger.return_slot();
                self.ledger.return_tokens(self.cost);
            }
            Holds::Ticket { ticket, .. } => {
                if ticket.give_up() {
                    self.ledger.return_tokens(billionths(ticket.tokens));
                }
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

/// The whole tokens that pay for `cost`; at least one, which is also the slot.
fn whole_tokens(cost: u64) -> u32 {
    u32::try_from(cost.div_ceil(ONE)).unwrap_or(u32::MAX).max(1)
}

fn billionths(tokens: u32) -> u64 {
    u64::from(tokens) * ONE
}
