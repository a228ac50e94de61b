//! The ledger in every order that threads can meet in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::loom::thread::{JoinHandle, spawn};

use super::desk::{Desk, Leased};
use super::ledger::Ledger;

use super::{Budget, Costs, Denied, Earn, Grant, Rules};
use crate::classify::Transient;
use crate::ratio::Ratio;
use crate::sync::model;

const TOKEN: u64 = 1_000_000_000;

/// A ledger, and the time at which it began.
#[derive(Clone)]
struct Rig(Arc<Ledger>, Instant);

impl Rig {
    fn new(ratio: Ratio, start: f64, floor: f64) -> Self {
        let (earn, costs) = (Earn::PerSuccess, Costs::ONE);
        let now = base();
        let rules = Rules { ratio, earn, costs, floor, start, burst: 1 };
        Self(Arc::new(Ledger::new(rules, None, now)), now)
    }

    fn take(&self) -> u32 {
        u32::from(self.0.take_tokens(TOKEN))
    }

    fn slot(&self) -> Option<Duration> {
        self.0.take_slot(Duration::MAX).ok()
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
fn what_is_earned_is_folded_and_spent_once() {
    model("conservation", 2, || {
        let rig = Rig::new(Ratio::ONE, 1.0, 0.0);
        let now = rig.1;
        let earns = rig.meanwhile(move |rig| {
            rig.0.earn();
            rig.0.fold(now);
            rig.take()
        });
        let gives_back = rig.meanwhile(move |rig| {
            let taken = rig.take();
            if taken > 0 {
                rig.0.return_tokens(TOKEN);
            }
        });
        rig.0.earn();
        rig.0.fold(now);
        let spent = rig.take() + earns.join().unwrap();
        gives_back.join().unwrap();
        rig.0.fold(now);
        assert_eq!(rig.0.tokens() + f64::from(spent), 3.0);
    });
}

#[test]
fn of_those_who_fold_a_stretch_one_does() {
    let folded = |fold: fn(&Rig, Instant)| {
        let rig = Rig::new(Ratio::ZERO, 0.0, 1.0);
        for _ in 0..3 {
            assert!(rig.slot().is_some());
        }
        fold(&rig, rig.1 + Duration::from_secs(1));
        // What the floor brought, and how far the slots have drained.
        (rig.0.tokens(), rig.slot())
    };
    model("election", 2, move || {
        let alone = folded(|rig, now| rig.0.fold(now));
        let together = folded(|rig, now| {
            let call = rig.meanwhile(move |rig| rig.0.count_call(now));
            let other = rig.meanwhile(move |rig| rig.0.fold(now));
            rig.0.fold(now);
            call.join().unwrap();
            other.join().unwrap();
        });
        assert_eq!(together.0, alone.0);
        assert_eq!(together.1, alone.1);
    });
}

#[test]
fn slots_are_taken_and_returned_one_by_one() {
    model("slots", 3, || {
        let rig = Rig::new(Ratio::ZERO, 0.0, 1.0);
        let others = [rig.meanwhile(|rig| rig.slot()), rig.meanwhile(|rig| rig.slot())];
        let mine = rig.slot();
        rig.0.return_slot();
        let others = others.map(|it| it.join().unwrap());
        assert!(mine.is_some() && others.iter().all(Option::is_some));
        assert_eq!(rig.slot(), Some(Duration::from_secs(1)), "two before it, of which one drained");
    });
}

#[test]
fn no_more_slots_are_taken_at_once_than_there_are() {
    model("slots without a pace", 3, || {
        let rig = Rig::new(Ratio::ZERO, 0.0, 0.0);
        let others = [rig.meanwhile(|rig| rig.slot()), rig.meanwhile(|rig| rig.slot())];
        let mine = u32::from(rig.slot().is_some());
        let others = others.map(|it| u32::from(it.join().unwrap().is_some()));
        assert_eq!(mine + others[0] + others[1], 2);
    });
}

#[test]
fn those_who_announce_themselves_at_once_see_each_other() {
    let announce = |rig: &Rig| u32::from(rig.0.announce(Duration::ZERO, Duration::MAX).is_ok());
    model("announcements", 3, move || {
        let rig = Rig::new(Ratio::ZERO, 0.0, 0.0);
        let others =
            [rig.meanwhile(move |rig| announce(&rig)), rig.meanwhile(move |rig| announce(&rig))];
        let mine = announce(&rig);
        let others = others.map(|it| it.join().unwrap());
        assert_eq!(mine + others[0] + others[1], 2);
        assert_eq!(announce(&rig), 0);
        rig.0.withdraw_announcement();
        assert_eq!(announce(&rig), 1);
    });
}

/// Of a fleet: a process with no tokens, and what it is given.
struct Member(Budget, Arc<Desk>, Instant);

impl Member {
    fn new() -> Self {
        let (earn, costs, ratio) = (Earn::PerSuccess, Costs::ONE, Ratio::ONE);
        let rules = Rules { ratio, earn, costs, floor: 0.0, start: 0.0, burst: 1 };
        let now = base();
        let (budget, desk) = Budget::with_desk(rules, Duration::from_secs(1), now);
        Self(budget, desk, now)
    }

    fn ask(&self) -> Result<Grant, Denied> {
        self.0.grant(self.2, Duration::ZERO, Duration::MAX, Transient::Server)
    }

    /// All that is here, in whole tokens.
    fn holds(&self) -> u64 {
        (self.0.ledger().tokens() * 1e9) as u64 / TOKEN + self.1.leased(0) / TOKEN
    }
}

fn brought(tokens: u32) -> Leased {
    Leased { tokens, first: 0, gap: 0, more: false }
}

fn is_paid(grant: &mut Grant, now: Instant) -> bool {
    grant.slot(now, Duration::MAX) == Ok(Duration::ZERO)
}

#[test]
fn a_ticket_that_is_given_up_while_it_is_paid_for_keeps_no_token() {
    model("ticket given up", 3, || {
        let member = Member::new();
        let grant = member.ask().unwrap();
        let desk = Arc::clone(&member.1);
        let answer = spawn(move || desk.receive(brought(1), 0));
        drop(grant);
        answer.join().unwrap();
        assert_eq!(member.holds(), 1);
    });
}

#[test]
fn of_two_tickets_one_token_pays_one() {
    model("two tickets", 3, || {
        let member = Member::new();
        let (mut first, mut second) = (member.ask().unwrap(), member.ask().unwrap());
        let desk = Arc::clone(&member.1);
        let answer = spawn(move || desk.receive(brought(1), 0));
        let budget = member.0.clone();
        let now = member.2;
        let earns = spawn(move || {
            budget.earn();
            let _ = budget.tokens(now);
        });
        answer.join().unwrap();
        earns.join().unwrap();
        assert!(is_paid(&mut first, now) && !is_paid(&mut second, now));
        first.sent();
        drop(second);
        assert_eq!(member.holds(), 1, "what was earned meanwhile");
    });
}

#[test]
fn a_ticket_that_is_opened_while_tokens_arrive_is_paid_or_finds_them_later() {
    model("ticket opened", 3, || {
        let member = Arc::new(Member::new());
        let desk = Arc::clone(&member.1);
        let answer = spawn(move || desk.receive(brought(1), 0));
        let asks = Arc::clone(&member);
        let grant = spawn(move || asks.ask().unwrap());
        answer.join().unwrap();
        let mut grant = grant.join().unwrap();
        let waits = !is_paid(&mut grant, member.2);
        assert_eq!(waits, member.1.open() == 1);
        drop(grant);
        assert_eq!(member.holds(), 1);
    });
}
