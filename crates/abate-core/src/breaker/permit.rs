use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::machine::{Machine, Ticket};
use super::state::Transition;
use crate::classify::Health;

/// Leave to make one call. What it came to is recorded on it.
///
/// # Cancel safety
///
/// Dropped, it says nothing about the dependency and gives back whatever slot it held;
/// [`Permit::cancelled`] also weighs how long the caller had waited.
#[must_use = "a permit that is dropped records nothing"]
pub struct Permit {
    /// Taken when the outcome is known.
    machine: Option<Arc<Machine>>,
    ticket: Ticket,
}

impl Permit {
    pub(super) fn new(machine: Arc<Machine>, ticket: Ticket) -> Self {
        Self { machine: Some(machine), ticket }
    }

    /// Records the outcome of what was sent at `sent`, known at `now` (when the response head is
    /// there).
    ///
    /// The [`Tail`] is for a body that breaks later, and is there if that would change anything:
    /// what counted as a failure already, or not at all, does not count again.
    pub fn record(
        mut self,
        health: Health,
        sent: Instant,
        now: Instant,
    ) -> (Option<Tail>, Option<Transition>) {
        let Some(machine) = self.machine.take() else { return (None, None) };
        let ticket = self.ticket;
        let (counted, transition) = machine.record(ticket, health, sent, now);
        let whole = matches!(health, Health::Success | Health::Answered);
        ((counted && whole).then_some(Tail { machine, ticket, recorded: now }), transition)
    }

    /// The caller gave up at `now` on what was sent at `sent`: a failure when it had waited half
    /// the attempt timeout or longer, else nothing.
    pub fn cancelled(self, sent: Instant, now: Instant) -> Option<Transition> {
        let waited = now.saturating_duration_since(sent);
        let outlived = self.machine.as_ref().is_some_and(|it| waited >= it.rules().slow());
        self.record(if outlived { Health::Failure } else { Health::Unknown }, sent, now).1
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(machine) = self.machine.take() {
            machine.release(self.ticket);
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
    machine: Arc<Machine>,
    ticket: Ticket,
    recorded: Instant,
}

impl Tail {
    /// The body broke off at `now`: a failure instead of a success, in the generation of the call.
    pub fn broke(self, now: Instant) -> Option<Transition> {
        self.machine.break_off(self.ticket, self.recorded, now)
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}
