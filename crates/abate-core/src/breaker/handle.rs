use std::fmt;
use std::time::Instant;

use super::machine::{Machine, Ticket};
use super::permit::Permit;
use super::rules::Rules;
use super::state::{Mode, Refused, State, Transition};
use crate::rng::Seed;
use crate::striped::Striped;

/// A call that was let through.
#[derive(Debug)]
pub struct Admitted {
    /// To be recorded, or dropped.
    pub permit: Permit,
    /// What the question itself changed, if anything.
    pub transition: Option<Transition>,
}

/// A circuit breaker; clones share it.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use abate_core::breaker::{Breaker, Rules, State};
/// use abate_core::classify::Health;
/// use abate_core::rng::Seed;
///
/// let mut now = Instant::now();
/// let breaker = Breaker::new(Rules::default(), Seed::new(1), now);
/// for _ in 0..30 {
///     let admitted = breaker.admit(now).expect("closed");
///     now += Duration::from_millis(100);
///     let (_, _transition) = admitted.permit.record(Health::Failure, now, now);
///     if breaker.state() == State::Open {
///         break;
///     }
/// }
/// let refused = breaker.admit(now).expect_err("2 s of failures open it");
/// assert!(refused.retry_at > Some(now));
/// ```
#[derive(Clone)]
pub struct Breaker {
    machine: Striped<Machine>,
}

impl Breaker {
    /// A closed breaker that begins at `now`; `seed` jitters its open times.
    #[must_use]
    pub fn new(rules: Rules, seed: Seed, now: Instant) -> Self {
        Self { machine: Striped::new(Machine::new(rules, seed, now)) }
    }

    /// Asks to make a call at `now`.
    ///
    /// # Errors
    ///
    /// [`Refused`] while the breaker is open, or while enough probes are under way.
    #[inline(always)]
    pub fn admit(&self, now: Instant) -> Result<Admitted, Refused> {
        match self.machine.admit(now) {
            Ok(ticket) => Ok(self.admitted(ticket, None)),
            Err(at) => {
                // Taken apart, so that the common way needs no memory for both.
                let Admitted { permit, transition } = self.admit_other(at)?;
                Ok(Admitted { permit, transition })
            }
        }
    }

    #[cold]
    fn admit_other(&self, at: u64) -> Result<Admitted, Refused> {
        let (ticket, transition) = self.machine.admit_other(at)?;
        Ok(self.admitted(ticket, transition))
    }

    #[inline]
    fn admitted(&self, ticket: Ticket, transition: Option<Transition>) -> Admitted {
        Admitted { permit: Permit::new(self.machine.hold(), ticket), transition }
    }

    /// Runs it in another way from now on; [`Mode::Automatic`] starts afresh, closed. What is
    /// under way decides nothing any more.
    pub fn set(&self, mode: Mode) -> Transition {
        self.machine.set(mode)
    }

    /// The rules that it was made with.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        self.machine.rules()
    }

    /// Where it stands. Time alone changes nothing: an open breaker whose time is up says
    /// [`State::Open`] until a call asks.
    #[must_use]
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// How many transitions it has made.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.machine.generation()
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker")
            .field("state", &self.state())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
