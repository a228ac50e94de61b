use std::fmt;
use std::mem::ManuallyDrop;
use std::time::Instant;

use http::{HeaderMap, StatusCode};

use super::machine::{Machine, Ticket};
use super::state::Transition;
use super::window::Place;
use crate::classify::Health;
use crate::outcome::Outcome;
use crate::striped::Stripe;

/// Leave to make one call. What it came to is recorded on it.
///
/// # Cancel safety
///
/// Dropped, it says nothing about the dependency and gives back whatever slot it held;
/// [`Permit::cancelled`] also weighs how long the caller had waited.
#[must_use = "a permit that is dropped records nothing"]
pub struct Permit {
    /// Taken when the outcome is known. Empty when its own drop is done.
    machine: ManuallyDrop<Option<Stripe<Machine>>>,
    ticket: Ticket,
}

impl Permit {
    #[inline]
    pub(super) fn new(machine: Stripe<Machine>, ticket: Ticket) -> Self {
        Self { machine: ManuallyDrop::new(Some(machine)), ticket }
    }

    /// What `outcome` says about the dependency, by the rules of the breaker.
    #[inline]
    #[must_use]
    pub fn health(&self, outcome: &Outcome<'_>) -> Health {
        let classifier = self.machine.as_ref().map(|machine| &machine.rules().classifier);
        classifier.map_or(Health::Unknown, |classifier| classifier.health(outcome))
    }

    /// Records the outcome of what was sent at `sent`, known at `now` (when the response head is
    /// there).
    ///
    /// The [`Tail`] is for a body that breaks later, and is there if that would change anything:
    /// what counted as a failure already, or not at all, does not count again.
    #[inline]
    pub fn record(
        self,
        health: Health,
        sent: Instant,
        now: Instant,
    ) -> (Option<Tail>, Option<Transition>) {
        let mut kept = None;
        let transition = self.record_with(health, sent, now, |tail| kept = Some(tail));
        (kept, transition)
    }

    /// As [`record`](Self::record), where the tail is kept in place and not handed about.
    #[inline(always)]
    pub fn record_with(
        mut self,
        health: Health,
        sent: Instant,
        now: Instant,
        keep: impl FnOnce(Tail),
    ) -> Option<Transition> {
        let machine = self.machine.take()?;
        let generation = self.ticket.generation;
        match machine.succeed(generation, health, sent, now) {
            Ok(recorded) => {
                keep(Tail { machine, generation, recorded });
                None
            }
            Err(at) => {
                let (tail, transition) =
                    Self::record_other(machine, self.ticket, health, sent, now, at);
                if let Some(tail) = tail {
                    keep(tail);
                }
                transition
            }
        }
    }

    #[cold]
    fn record_other(
        machine: Stripe<Machine>,
        ticket: Ticket,
        health: Health,
        sent: Instant,
        now: Instant,
        at: u64,
    ) -> (Option<Tail>, Option<Transition>) {
        let (counted, transition) = machine.record(ticket, health, sent, now, at);
        let whole = matches!(health, Health::Success | Health::Answered);
        let generation = ticket.generation;
        let tail = |recorded| Tail { machine, generation, recorded };
        (counted.filter(|_| whole).map(tail), transition)
    }

    /// The caller gave up at `now` on what was sent at `sent`: a failure when it had waited half
    /// the attempt timeout or longer, else nothing.
    pub fn cancelled(self, sent: Instant, now: Instant) -> Option<Transition> {
        let waited = now.saturating_duration_since(sent);
        let outlived = self.machine.as_ref().is_some_and(|it| waited >= it.rules().slow());
        self.record(if outlived { Health::Failure } else { Health::Unknown }, sent, now).1
    }

    #[cold]
    fn release(&mut self) {
        if let Some(machine) = self.machine.take() {
            machine.release(self.ticket);
        }
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        if self.machine.is_some() {
            self.release();
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

/// What remains of a permit while the response body is read.
pub struct Tail {
    machine: Stripe<Machine>,
    /// The generation in which the call was admitted.
    generation: u64,
    recorded: Place,
}

impl Tail {
    /// What trailers say about the dependency, by the rules of the breaker: read as the headers of
    /// a success, since only a judge can find something in them.
    #[must_use]
    pub fn health(&self, trailers: &HeaderMap) -> Health {
        let outcome = Outcome::Response { status: StatusCode::OK, headers: trailers };
        self.machine.rules().classifier.health(&outcome)
    }

    /// The body broke off at `now`: a failure instead of a success, in the generation of the call.
    pub fn broke(self, now: Instant) -> Option<Transition> {
        self.machine.break_off(self.generation, self.recorded, now)
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("recorded", &self.recorded).finish_non_exhaustive()
    }
}
