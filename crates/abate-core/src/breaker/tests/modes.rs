//! What a handle asks for.

use super::super::Mode;
use super::*;

#[test]
fn forced_open_refuses_until_it_is_told_otherwise() {
    let mut rig = Rig::new();
    let told = rig.breaker.set(Mode::ForcedOpen);
    assert_eq!((told.from, told.to, told.open_for), (State::Closed, State::ForcedOpen, None));
    for _ in 0..100 {
        assert_eq!(rig.refused(), Refused { retry_at: None, transition: None });
        rig.wait(60.0);
    }
    rig.breaker.set(Mode::Automatic);
    assert_eq!(rig.call(Health::Success), None);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn disabled_lets_everything_pass_and_learns_nothing() {
    let mut rig = Rig::open();
    rig.breaker.set(Mode::Disabled);
    for _ in 0..100 {
        rig.calls(10, Health::Failure);
        rig.wait(0.1);
    }
    assert_eq!(rig.state(), State::Disabled);
    let (tail, transition) = rig.admitted().record(Health::Success, rig.now, rig.now);
    assert!(tail.is_none() && transition.is_none());

    rig.breaker.set(Mode::Automatic);
    assert_eq!(rig.call(Health::Failure), None, "nothing of before is remembered");
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn observe_only_tells_when_it_would_have_opened_and_lets_everything_pass() {
    let mut rig = Rig::new();
    rig.breaker.set(Mode::ObserveOnly);
    let mut told = Vec::new();
    for _ in 0..100 {
        told.extend(rig.call(Health::Failure));
        rig.wait(0.25);
    }
    assert!(told.len() >= 5, "25 s of failures, with fresh evidence of 2 s for each: {told:?}");
    for transition in told {
        assert_eq!((transition.from, transition.to), (State::ObserveOnly, State::ObserveOnly));
        assert_eq!(transition.open_for, Some(Rules::OPEN_FOR));
    }
    let tail = rig.end_with_body(rig.admitted(), Health::Success);
    assert_eq!(tail.broke(rig.now), None);
}

#[test]
fn automatic_starts_afresh_and_what_is_under_way_decides_nothing() {
    let mut rig = Rig::due();
    let probes: Vec<_> = (0..3).map(|_| rig.admitted()).collect();
    let told = rig.breaker.set(Mode::Automatic);
    assert_eq!((told.from, told.to), (State::HalfOpen, State::Closed));
    for probe in probes {
        assert_eq!(rig.end(probe, Health::Failure), None);
    }
    assert_eq!(rig.state(), State::Closed);
    let opened = rig.trip().open_for.unwrap();
    assert!(opened <= Rules::OPEN_FOR, "the doubling is forgotten");
}

#[test]
fn permits_of_every_mode_can_be_dropped() {
    for mode in [Mode::ForcedOpen, Mode::Disabled, Mode::ObserveOnly, Mode::Automatic] {
        let rig = Rig::new();
        let before = rig.admitted();
        rig.breaker.set(mode);
        let after = rig.ask();
        drop(before);
        drop(after);
        assert_eq!(rig.breaker.set(Mode::Automatic).to, State::Closed);
        rig.calls(5, Health::Success);
    }
}
