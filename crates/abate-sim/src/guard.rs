//! Who turns calls away before they are made: the shipped breaker, or a plain one, for comparison.

use std::time::Instant;

use abate_core::breaker::{Breaker, Permit, State};
use abate_core::classify::{Classifier, Health};
use abate_core::outcome::Outcome;
use abate_core::policy::Policy;
use abate_core::rng::Seed;

use crate::law::nanos;
use crate::model::Guarding;

/// One process's breaker.
#[derive(Debug)]
pub(crate) enum Guard {
    Off,
    Breaker(Breaker),
    Plain(Plain),
}

/// Leave to make one call.
#[derive(Debug)]
pub(crate) enum Leave {
    Breaker(Permit),
    /// Given by a plain breaker that had opened so many times.
    Plain(u32),
}

/// A breaker as textbooks have it: so many failures in a row open it for a fixed time, after which one
/// call is let through to see.
#[derive(Debug)]
pub(crate) struct Plain {
    failures: u32,
    sleep: u64,
    in_a_row: u32,
    openings: u32,
    state: PlainState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainState {
    Closed,
    OpenUntil(u64),
    Probing,
}

impl Guard {
    pub(crate) fn new(guarding: Guarding, policy: &Policy, seed: Seed, start: Instant) -> Self {
        match guarding {
            Guarding::Off => Self::Off,
            Guarding::Breaker => Self::Breaker(Breaker::new(policy.breaker(), seed, start)),
            Guarding::Plain { failures, sleep } => Self::Plain(Plain {
                failures,
                sleep: nanos(sleep),
                in_a_row: 0,
                openings: 0,
                state: PlainState::Closed,
            }),
        }
    }

    /// Whether it turns calls away, or would.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Breaker(breaker) => breaker.state() != State::Closed,
            Self::Plain(plain) => plain.state != PlainState::Closed,
        }
    }

    /// Asks to make a call at `now`, which is `at` for the shipped breaker.
    pub(crate) fn admit(&mut self, now: u64, at: Instant) -> Result<Option<Leave>, ()> {
        match self {
            Self::Off => Ok(None),
            Self::Breaker(breaker) => match breaker.admit(at) {
                Ok(admitted) => Ok(Some(Leave::Breaker(admitted.permit))),
                Err(_) => Err(()),
            },
            Self::Plain(plain) => plain.admit(now).map(|leave| Some(Leave::Plain(leave))),
        }
    }

    /// A call that was sent at `sent` has come to `outcome`; both moments are the shipped breaker's.
    pub(crate) fn record(
        &mut self,
        leave: Leave,
        outcome: &Outcome<'_>,
        (sent, at): (Instant, Instant),
        now: u64,
    ) {
        match (self, leave) {
            (_, Leave::Breaker(permit)) => {
                let health = permit.health(outcome);
                let (_tail, _transition) = permit.record(health, sent, at);
            }
            (Self::Plain(plain), Leave::Plain(opening)) => {
                plain.record(opening, health_of(outcome) == Health::Failure, now);
            }
            (_, Leave::Plain(_)) => {}
        }
    }

    /// A call that was sent at `sent` was cut short.
    pub(crate) fn cut(&mut self, leave: Leave, (sent, at): (Instant, Instant), now: u64) {
        match (self, leave) {
            (_, Leave::Breaker(permit)) => {
                let _transition = permit.cancelled(sent, at);
            }
            (Self::Plain(plain), Leave::Plain(opening)) => plain.record(opening, true, now),
            (_, Leave::Plain(_)) => {}
        }
    }
}

impl Plain {
    fn admit(&mut self, now: u64) -> Result<u32, ()> {
        match self.state {
            PlainState::Closed => Ok(self.openings),
            PlainState::OpenUntil(until) if now >= until => {
                self.state = PlainState::Probing;
                Ok(self.openings)
            }
            PlainState::OpenUntil(_) | PlainState::Probing => Err(()),
        }
    }

    fn record(&mut self, opening: u32, failed: bool, now: u64) {
        if opening != self.openings {
            return; // It was sent before the breaker opened, and says nothing new.
        }
        self.in_a_row = if failed { self.in_a_row + 1 } else { 0 };
        match self.state {
            PlainState::Probing if !failed => self.state = PlainState::Closed,
            PlainState::Closed if self.in_a_row < self.failures => {}
            PlainState::Closed | PlainState::Probing => {
                self.state = PlainState::OpenUntil(now.saturating_add(self.sleep));
                self.openings += 1;
                self.in_a_row = 0;
            }
            PlainState::OpenUntil(_) => {}
        }
    }
}

fn health_of(outcome: &Outcome<'_>) -> Health {
    Classifier::default().health(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_breaker_opens_sleeps_and_lets_one_through() {
        let mut plain =
            Plain { failures: 2, sleep: 10, in_a_row: 0, openings: 0, state: PlainState::Closed };
        let first = plain.admit(0).unwrap();
        plain.record(first, true, 1);
        plain.record(first, false, 1);
        plain.record(first, true, 1);
        assert!(plain.admit(1).is_ok());
        plain.record(first, true, 2);
        assert!(plain.admit(11).is_err());
        let probe = plain.admit(12).unwrap();
        assert!(plain.admit(12).is_err());
        plain.record(first, false, 12);
        assert!(plain.admit(12).is_err(), "an answer of before says nothing");
        plain.record(probe, false, 13);
        assert!(plain.admit(13).is_ok());
    }
}
