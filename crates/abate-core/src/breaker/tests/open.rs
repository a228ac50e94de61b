//! How long it stays open, and what does not change that.

use super::*;

#[test]
fn open_times_are_steady_four_times_and_then_double_to_the_longest() {
    let expected = [2.0, 2.0, 2.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0];
    for seed in 0..20 {
        let mut rig = Rig::seeded(Rules::default(), seed);
        let mut opened = rig.trip().open_for.unwrap();
        for longest in expected {
            assert!(opened >= seconds(longest) / 2 && opened <= seconds(longest), "{opened:?}");
            assert_eq!(rig.refused().retry_at, Some(rig.now + opened));
            rig.wait_until_due();
            opened = rig.reopen();
        }
    }
}

#[test]
fn open_times_are_even_between_half_and_the_whole() {
    let mut quarters = [0; 4];
    for seed in 0..4_000 {
        let opened = Rig::seeded(Rules::default(), seed).trip().open_for.unwrap();
        quarters[((opened.as_secs_f64() - 1.0) * 3.999) as usize] += 1;
    }
    assert!(quarters.iter().all(|count| (850..1_150).contains(count)), "{quarters:?}");
}

#[test]
fn open_times_differ_from_time_to_time() {
    let mut rig = Rig::new();
    let first = rig.trip().open_for;
    rig.wait_until_due();
    assert_ne!(Some(rig.reopen()), first);
}

// CB-11
#[test]
fn the_open_time_runs_from_the_transition_and_not_from_the_call() {
    let rules =
        Rules { open_for: seconds(30.0), attempt_timeout: Some(seconds(60.0)), ..Rules::default() };
    let mut rig = Rig::with(rules);
    let slow: Vec<_> = (0..10).map(|_| rig.admitted()).collect();
    rig.wait(38.0);
    let quick: Vec<_> = (0..9).map(|_| rig.admitted()).collect();
    rig.calls(1, Health::Failure);
    rig.wait(2.0);
    let opened: Vec<_> = slow.into_iter().filter_map(|it| rig.end(it, Health::Failure)).collect();
    assert_eq!(opened.len(), 1, "one transition, however many fail");
    let open_for = opened[0].open_for.unwrap();
    assert!(open_for >= seconds(15.0));

    let reopens = rig.now + open_for;
    for permit in quick {
        rig.wait(0.1);
        assert_eq!(rig.end(permit, Health::Failure), None);
        assert_eq!(rig.refused().retry_at, Some(reopens), "later failures do not prolong it");
    }
    rig.now = reopens - Duration::from_nanos(1);
    assert_eq!(rig.refused().retry_at, Some(reopens));
    rig.now = reopens;
    let half_open = rig.ask().expect("its time is up").transition.unwrap();
    assert_eq!((half_open.from, half_open.to), (State::Open, State::HalfOpen));
}

// CB-11
#[test]
fn two_probes_that_fail_together_open_it_once() {
    let rig = Rig::due();
    let probes = [rig.admitted(), rig.admitted(), rig.admitted()];
    let opened: Vec<_> = probes.into_iter().filter_map(|it| rig.end(it, Health::Failure)).collect();
    assert_eq!(opened.len(), 1);
    assert_eq!((opened[0].from, opened[0].to), (State::HalfOpen, State::Open));
}

// CB-10
#[test]
fn refusals_change_nothing() {
    let mut rig = Rig::open();
    let (generation, reopens) = (rig.breaker.generation(), rig.refused().retry_at);
    for _ in 0..1_000 {
        rig.wait(0.000_9);
        let refused = rig.refused();
        assert_eq!((refused.retry_at, refused.transition), (reopens, None));
    }
    assert_eq!(rig.breaker.generation(), generation);
    rig.wait_until_due();
    rig.close();
    rig.wait(1.0);
    for _ in 0..100 {
        rig.calls(10, Health::Success);
        rig.wait(0.1);
    }
}

#[test]
fn a_transition_empties_window_and_streak() {
    let mut rig = Rig::open();
    rig.wait_until_due();
    rig.close();
    // The failures before are less than five seconds old.
    rig.wait(1.0);
    rig.calls(9, Health::Failure);
    rig.wait(2.0);
    assert!(rig.call(Health::Failure).is_some(), "ten of its own");
}

#[test]
fn time_alone_changes_no_state() {
    let mut rig = Rig::open();
    rig.wait(1e6);
    assert_eq!(rig.state(), State::Open);
    assert!(rig.ask().is_ok());
    assert_eq!(rig.state(), State::HalfOpen);
}

#[test]
fn an_open_time_beyond_every_clock_is_borne() {
    let forever =
        Rules { open_for: Duration::MAX, open_at_most: Duration::MAX, ..Rules::default() };
    let mut rig = Rig::with(forever);
    rig.trip();
    rig.wait(1e9);
    rig.refused();
}
