//! The breaker in every order that threads can meet in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::loom::thread::{JoinHandle, spawn};

use super::machine::{Machine, Ticket};
use super::window::{Place, Window};
use super::{Mode, Rules, State, Transition};
use crate::classify::Health::{self, Failure, Success};
use crate::rng::Seed;
use crate::sync::model;

/// One call is enough for a rate, and one probe in half-open.
fn rules() -> Rules {
    Rules { minimum_calls: 1, probes: 1, ..Rules::default() }
}

/// A breaker, and the time.
#[derive(Clone)]
struct Rig {
    machine: Arc<Machine>,
    now: Instant,
}

impl Rig {
    /// Closed, with calls under way for two seconds that trip it when they fail.
    fn tense<const N: usize>() -> (Self, [Ticket; N]) {
        let now = base();
        let mut rig = Self { machine: Arc::new(Machine::new(rules(), Seed::new(1), now)), now };
        let tickets = std::array::from_fn(|_| rig.admitted());
        rig.now += Duration::from_secs(2);
        (rig, tickets)
    }

    /// One whose open time is over.
    fn due() -> Self {
        let (mut rig, [call]) = Self::tense();
        assert_eq!(rig.end(call, Failure).unwrap().to, State::Open);
        rig.now = rig.ask().unwrap_err().retry_at.unwrap();
        rig
    }

    /// One that has closed again.
    fn slow_start() -> Self {
        let rig = Self::due();
        assert_eq!(rig.end(rig.admitted(), Success).unwrap().to, State::Closed);
        rig
    }

    fn after(&self, seconds: u64) -> Self {
        Self { machine: Arc::clone(&self.machine), now: self.now + Duration::from_secs(seconds) }
    }

    fn ask(&self) -> Result<(Ticket, Option<Transition>), super::Refused> {
        match self.machine.admit(self.now) {
            Ok(ticket) => Ok((ticket, None)),
            Err(at) => self.machine.admit_other(at),
        }
    }

    fn admitted(&self) -> Ticket {
        self.ask().expect("let through").0
    }

    fn end(&self, ticket: Ticket, health: Health) -> Option<Transition> {
        match self.machine.succeed(ticket.generation, health, self.now, self.now) {
            Ok(_) => None,
            Err(at) => self.machine.record(ticket, health, self.now, self.now, at).1,
        }
    }

    fn meanwhile<T: 'static>(&self, act: impl FnOnce(Self) -> T + 'static) -> JoinHandle<T> {
        let rig = self.clone();
        spawn(move || act(rig))
    }
}

#[expect(clippy::disallowed_methods, reason = "the only way to an `Instant`")]
fn base() -> Instant {
    Instant::now()
}

#[test]
fn one_of_those_who_ask_when_the_open_time_is_over_is_the_probe() {
    model("probe", 3, || {
        let rig = Rig::due();
        let others = [rig.meanwhile(|rig| rig.ask()), rig.meanwhile(|rig| rig.ask())];
        let [second, third] = others.map(|it| it.join().unwrap());
        let probes: Vec<_> = [second, third].into_iter().flatten().collect();
        assert_eq!(probes.len(), 1);
        assert_eq!(probes[0].1.unwrap().to, State::HalfOpen);
        assert_eq!(rig.machine.generation(), 2);
    });
}

#[test]
fn a_stale_outcome_changes_no_state_that_it_does_not_belong_to() {
    model("stale", 3, || {
        let (rig, [call]) = Rig::tense();
        let outcome = rig.meanwhile(move |rig| rig.end(call, Failure));
        rig.machine.set(Mode::Automatic);
        let tripped = outcome.join().unwrap();
        // Either it opened before the handle closed it, or it came too late.
        assert_eq!(rig.machine.generation(), 1 + u64::from(tripped.is_some()));
        assert_eq!(rig.machine.state(), State::Closed);
        assert_eq!(rig.end(rig.admitted(), Failure), None, "the window is empty");
    });
}

#[test]
fn a_probe_whose_lease_runs_out_ends_once() {
    for health in [Success, Failure] {
        model("lease", 3, move || {
            let rig = Rig::due();
            let probe = rig.admitted();
            let late = rig.after(11);
            let outcome = rig.meanwhile(move |rig| rig.end(probe, health));
            let asked = late.ask();
            let ended = outcome.join().unwrap();
            let expired = asked.as_ref().err().and_then(|refused| refused.transition);
            assert!(ended.is_some() != expired.is_some());
            // Opened again by the outcome, it may be due again.
            let due = u64::from(asked.is_ok_and(|(_, transition)| transition.is_some()));
            assert_eq!(rig.machine.generation(), 3 + due);
        });
    }
}

#[test]
fn of_failures_that_trip_at_once_one_does() {
    model("trip", 3, || {
        let (rig, [first, second]) = Rig::tense();
        let other = rig.meanwhile(move |rig| rig.end(second, Failure));
        let trips = [rig.end(first, Failure), other.join().unwrap()];
        assert_eq!(trips.into_iter().flatten().count(), 1);
        assert_eq!((rig.machine.state(), rig.machine.generation()), (State::Open, 1));
    });
}

#[test]
fn a_dropped_probe_is_taken_over_once_and_never_lost() {
    model("drop", 3, || {
        let rig = Rig::due();
        let probe = rig.admitted();
        let dropped = rig.meanwhile(move |rig| rig.machine.release(probe));
        let asked = rig.meanwhile(|rig| rig.ask().is_ok());
        let got = [rig.ask().is_ok(), asked.join().unwrap()];
        dropped.join().unwrap();
        assert!(got != [true, true], "two probes out");
        assert_eq!(rig.ask().is_ok(), got == [false, false], "wedged, or two probes out");
    });
}

#[test]
fn an_outcome_at_the_end_of_slow_start_counts_once() {
    for health in [Success, Failure] {
        model("slow start", 3, move || {
            let rig = Rig::slow_start();
            let call = rig.admitted();
            let (calm, generation) = (rig.after(1), rig.machine.generation());
            let outcome = calm.meanwhile(move |rig| rig.end(call, health));
            let asked = calm.ask();
            let opened = outcome.join().unwrap();
            match opened {
                // One failure too many while it lasted.
                Some(opened) => assert_eq!((health, opened.to), (Failure, State::Open)),
                None => assert_eq!(rig.machine.generation(), generation),
            }
            if opened.is_none() {
                // Two failures of two calls trip, one of two does not.
                let trips = rig.after(2).end(asked.unwrap().0, Failure);
                assert_eq!(trips.is_some(), health == Failure);
            }
        });
    }
}

#[test]
fn what_is_added_while_a_bucket_changes_hands_is_in_the_new_one() {
    for (name, later) in [("window, next stretch", (0, ROUND)), ("window, next generation", (1, 0))]
    {
        model(name, 3, move || {
            let rig = Bucket::new();
            let [old, new] = [rig.place((0, 0)), rig.place(later)];
            rig.0.admit(old);
            let stale = rig.meanwhile(move |window| {
                window.admit(old);
                window.discount(old);
                window.discount(old);
            });
            let begins = rig.meanwhile(move |window| {
                window.admit(new);
                window.admit(new);
                window.discount(new);
            });
            rig.0.admit(new);
            stale.join().unwrap();
            begins.join().unwrap();
            assert_eq!(rig.0.read(new).admitted, 2);
        });
    }
}

#[test]
fn a_stale_discount_takes_nothing_of_the_new_bucket() {
    model("window, discount", 3, || {
        let rig = Bucket::new();
        let [old, new] = [(0, 0), (0, ROUND)].map(|it| rig.place(it));
        rig.0.admit(old);
        let stale = rig.meanwhile(move |window| window.discount(old));
        rig.0.admit(new);
        rig.0.discount(new);
        stale.join().unwrap();
        assert_eq!(rig.0.read(new).admitted, 0);
    });
}

#[test]
fn a_bucket_that_changes_hands_twice_at_once_loses_one_at_the_most() {
    model("window, twice", 3, || {
        let rig = Bucket::new();
        let [old, new, newest] = [(0, 0), (0, ROUND), (0, 2 * ROUND)].map(|it| rig.place(it));
        rig.0.admit(old);
        let stale = rig.meanwhile(move |window| window.admit(old));
        let next = rig.meanwhile(move |window| window.admit(new));
        rig.0.admit(newest);
        rig.0.admit(newest);
        stale.join().unwrap();
        next.join().unwrap();
        assert!(matches!(rig.0.read(newest).admitted, 1 | 2));
    });
}

/// In nanoseconds, the time after which the same bucket is used again.
const ROUND: u64 = 5_000_000_000;

struct Bucket(Arc<Window>);

impl Bucket {
    fn new() -> Self {
        Self(Arc::new(Window::new(&rules())))
    }

    fn place(&self, (generation, at): (u64, u64)) -> Place {
        self.0.place(generation, at)
    }

    fn meanwhile(&self, act: impl FnOnce(&Window) + 'static) -> JoinHandle<()> {
        let window = Arc::clone(&self.0);
        spawn(move || act(&window))
    }
}
