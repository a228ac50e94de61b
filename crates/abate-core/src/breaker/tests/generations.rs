//! What was admitted before a transition decides nothing after it.

use super::*;

// CB-07
#[test]
fn stale_results_while_open_do_not_prolong_it() {
    let mut rig = Rig::new();
    let stale: Vec<_> = (0..30).map(|_| rig.admitted()).collect();
    for _ in 0..50 {
        rig.call(Health::Failure);
    }
    rig.wait(2.0);
    rig.fail_until_open(0.0);
    let (generation, reopens) = (rig.breaker.generation(), rig.refused().retry_at);
    rig.wait(0.5);
    for (n, permit) in stale.into_iter().enumerate() {
        let health = if n % 2 == 0 { Health::Failure } else { Health::Success };
        assert_eq!(rig.end(permit, health), None);
    }
    assert_eq!((rig.breaker.generation(), rig.refused().retry_at), (generation, reopens));
}

// CB-07
#[test]
fn stale_results_in_half_open_are_no_probes() {
    for health in [Health::Success, Health::Failure, Health::Answered] {
        let mut rig = Rig::new();
        let stale: Vec<_> = (0..10).map(|_| rig.admitted()).collect();
        rig.trip();
        rig.wait_until_due();
        let probe = rig.admitted();
        for permit in stale {
            assert_eq!(rig.end(permit, health), None);
        }
        assert_eq!(rig.state(), State::HalfOpen);
        let (_second, _third) = (rig.admitted(), rig.admitted());
        rig.refused();
        drop(probe);
    }
}

// CB-07
#[test]
fn stale_failures_after_recovery_do_not_open_it() {
    let mut rig = Rig::new();
    let mut stale: Vec<_> = (0..200).map(|_| rig.admitted()).collect();
    rig.trip();
    rig.wait_until_due();
    let hung = rig.admitted();
    rig.close();
    let mut fail_some = |rig: &Rig| {
        for permit in stale.drain(..100) {
            assert_eq!(rig.end(permit, Health::Failure), None);
        }
    };
    fail_some(&rig);
    rig.wait(1.0);
    rig.call(Health::Success);
    rig.wait(2.0);
    fail_some(&rig);
    assert_eq!(rig.end(hung, Health::Failure), None);
    rig.calls(8, Health::Failure);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn stale_results_change_nothing_in_slow_start() {
    let mut rig = Rig::new();
    let mut stale: Vec<_> = (0..50).map(|_| rig.admitted()).collect();
    rig.trip();
    rig.wait_until_due();
    rig.close();
    let _under_way = [rig.admitted(), rig.admitted(), rig.admitted()];
    for health in [Health::Success, Health::Answered, Health::Failure, Health::Unknown] {
        for permit in stale.drain(..10) {
            assert_eq!(rig.end(permit, health), None);
        }
        rig.refused();
    }
    drop(stale);
    rig.refused();
}

#[test]
fn a_permit_dropped_after_a_transition_returns_no_slot_that_is_not_its_own() {
    let mut rig = Rig::due();
    let earlier = [rig.admitted(), rig.admitted()];
    let third = rig.admitted();
    rig.wait(11.0);
    let opened = rig.refused().transition.expect("the leases have run out");
    rig.wait(opened.open_for.unwrap().as_secs_f64());
    let _probes = [rig.admitted(), rig.admitted(), rig.admitted()];
    drop(earlier);
    drop(third);
    rig.refused();
}

#[test]
fn a_body_of_another_generation_breaks_without_effect() {
    let mut rig = Rig::new();
    let mut tails: Vec<_> =
        (0..60).map(|_| rig.end_with_body(rig.admitted(), Health::Success)).collect();
    let mut break_some = |rig: &Rig| {
        for tail in tails.drain(..20) {
            assert_eq!(tail.broke(rig.now), None);
        }
    };
    rig.wait(1.0);
    rig.fail_until_open(0.01);
    break_some(&rig);
    assert_eq!(rig.state(), State::Open);
    rig.wait_until_due();
    let probe = rig.admitted();
    break_some(&rig);
    assert_eq!(rig.state(), State::HalfOpen);
    drop(probe);
    rig.close();
    break_some(&rig);
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn each_transition_is_a_generation_and_the_end_of_slow_start_is_none() {
    let mut rig = Rig::new();
    assert_eq!(rig.breaker.generation(), 0);
    rig.trip();
    assert_eq!(rig.breaker.generation(), 1);
    rig.wait_until_due();
    drop(rig.admitted());
    assert_eq!(rig.breaker.generation(), 2);
    rig.close();
    assert_eq!(rig.breaker.generation(), 3);
    rig.wait(1.0);
    rig.call(Health::Success);
    assert_eq!(rig.breaker.generation(), 3);
}
