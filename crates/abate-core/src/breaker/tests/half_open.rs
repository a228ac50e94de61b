//! Probes: how many, what ends them, and that none of them can wedge it.

use super::*;

// CB-03
#[test]
fn of_five_hundred_who_ask_at_once_three_are_probes() {
    let rig = Rig::due();
    let asked: Vec<_> = (0..500).map(|_| rig.ask()).collect();
    let admitted: Vec<_> = asked.iter().flatten().collect();
    assert_eq!(admitted.len(), 3);
    assert_eq!(admitted.iter().filter(|it| it.transition.is_some()).count(), 1);
    for refused in asked.iter().filter_map(|it| it.as_ref().err()) {
        assert_eq!((refused.retry_at, refused.transition), (None, None));
    }
}

// CB-03
#[test]
fn of_eight_threads_that_ask_at_once_three_calls_are_probes() {
    for _ in 0..100 {
        let rig = Rig::due();
        let start = std::sync::Barrier::new(8);
        let asked: Vec<_> = std::thread::scope(|scope| {
            let ask_often = || {
                start.wait();
                (0..20).map(|_| rig.ask()).collect::<Vec<_>>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask_often)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let transitions = asked.iter().flatten().filter(|it| it.transition.is_some()).count();
        assert_eq!((asked.iter().flatten().count(), transitions), (3, 1));
    }
}

#[test]
fn two_successes_close_it() {
    use Health::{Failure, Success};
    for outcomes in
        [&[Success, Success][..], &[Failure, Success, Success], &[Success, Failure, Success]]
    {
        let rig = Rig::due();
        let (last, before) = outcomes.split_last().unwrap();
        before.iter().for_each(|health| assert_eq!(rig.call(*health), None));
        let closed = rig.call(*last).unwrap();
        assert_eq!((closed.to, rig.state()), (State::Closed, State::Closed), "{outcomes:?}");
    }
}

#[test]
fn two_failures_open_it() {
    use Health::{Failure, Success};
    for outcomes in
        [&[Failure, Failure][..], &[Failure, Success, Failure], &[Success, Failure, Failure]]
    {
        let rig = Rig::due();
        let (last, before) = outcomes.split_last().unwrap();
        before.iter().for_each(|health| assert_eq!(rig.call(*health), None));
        let opened = rig.call(*last).unwrap();
        assert_eq!((opened.to, rig.state()), (State::Open, State::Open), "{outcomes:?}");
        assert_eq!(rig.refused().retry_at, opened.open_for.map(|it| rig.now + it));
    }
}

#[test]
fn the_threshold_among_the_probes_is_the_failure_rate() {
    for (probes, percent, opening) in [(1, 50, 1), (4, 50, 2), (5, 50, 3), (10, 25, 3), (3, 100, 3)]
    {
        let failure_rate = crate::ratio::Ratio::from_percent(percent).unwrap();
        let rules = Rules { probes, failure_rate, ..Rules::default() };
        let rig = Rig::due_with(rules);
        rig.calls(opening - 1, Health::Failure);
        assert_eq!(rig.call(Health::Failure).unwrap().to, State::Open, "{rules:?}");

        let rig = Rig::due_with(rules);
        rig.calls(probes - opening, Health::Success);
        assert_eq!(rig.call(Health::Success).unwrap().to, State::Closed, "{rules:?}");
    }
}

// CB-01
#[test]
fn a_probe_that_says_nothing_gives_its_slot_back() {
    let rig = Rig::due();
    let held = [rig.admitted(), rig.admitted()];
    for health in [Health::Unknown, Health::Answered, Health::Unknown, Health::Answered] {
        let probe = rig.admitted();
        rig.refused();
        assert_eq!(rig.end(probe, health), None);
    }
    let _probe = rig.admitted();
    rig.refused();
    assert_eq!(held.map(|it| rig.end(it, Health::Success))[1].unwrap().to, State::Closed);
}

#[test]
fn three_answers_of_any_kind_close_it() {
    let rig = Rig::due();
    rig.calls(2, Health::Answered);
    rig.calls(5, Health::Unknown);
    assert_eq!(rig.call(Health::Answered).unwrap().to, State::Closed);
}

#[test]
fn a_probe_that_is_dropped_or_given_up_early_returns_its_slot() {
    let mut rig = Rig::due();
    for _ in 0..50 {
        let probes = [rig.admitted(), rig.admitted(), rig.admitted()];
        let sent = rig.now;
        rig.wait(4.9);
        rig.refused();
        for (n, probe) in probes.into_iter().enumerate() {
            match n {
                0 => drop(probe),
                _ => assert_eq!(probe.cancelled(sent, rig.now), None),
            }
        }
    }
    rig.close();
}

#[test]
fn a_probe_given_up_late_has_failed() {
    let mut rig = Rig::due();
    let (probes, sent) = ([rig.admitted(), rig.admitted()], rig.now);
    rig.wait(5.0);
    let [first, second] = probes.map(|probe| probe.cancelled(sent, rig.now));
    assert_eq!(first, None);
    assert_eq!(second.unwrap().to, State::Open);
}

#[test]
fn leases_that_have_run_out_are_failures() {
    for (timeout, lease) in [(None, 11.0), (Some(seconds(3.0)), 4.0)] {
        let mut rig = Rig::due_with(Rules { attempt_timeout: timeout, ..Rules::default() });
        let _hung = [rig.admitted(), rig.admitted(), rig.admitted()];
        rig.wait(lease - 0.001);
        assert_eq!(rig.refused().transition, None);
        rig.wait(0.001);
        let refused = rig.refused();
        let opened = refused.transition.expect("three leases have run out");
        assert_eq!((opened.from, opened.to), (State::HalfOpen, State::Open));
        assert_eq!(refused.retry_at, opened.open_for.map(|it| rig.now + it));
    }
}

#[test]
fn a_probe_whose_lease_has_run_out_decides_nothing_more() {
    let mut rig = Rig::due();
    let late = rig.admitted();
    rig.wait(11.0);
    let (second, third) = (rig.admitted(), rig.admitted());
    rig.refused();
    assert_eq!(rig.end(late, Health::Failure), None, "it has failed already");
    rig.refused();
    assert_eq!(rig.end(second, Health::Success), None);
    assert_eq!(rig.end(third, Health::Failure).unwrap().to, State::Open);

    let mut rig = Rig::due();
    let late = rig.admitted();
    rig.wait(11.0);
    let second = rig.admitted();
    assert_eq!(rig.end(late, Health::Success), None);
    assert_eq!(rig.end(second, Health::Success), None, "the first of its kind");
    assert_eq!(rig.state(), State::HalfOpen);
}

#[test]
fn the_body_of_a_probe_that_breaks_is_a_failure() {
    let rig = Rig::due();
    let tail = rig.end_with_body(rig.admitted(), Health::Success);
    assert_eq!(tail.broke(rig.now), None);
    assert_eq!(rig.call(Health::Failure).unwrap().to, State::Open);
}

/// Whatever becomes of probes, in whatever order, it lets another through before long, and closes
/// when the dependency is back.
#[test]
fn no_interleaving_of_probes_wedges_it() {
    let mut ends = [0_u32; 8];
    for seed in 0..10_000 {
        let mut dice = Dice::new(seed);
        let mut rig = Rig::new();
        let admit =
            |rig: &Rig| rig.ask().ok().map(|it| (it.permit, rig.now, rig.breaker.generation()));
        // Those that come back when it is no longer closed are stale, and so is what a probe is
        // after a transition. Those that never come back were never polled.
        let mut held: Vec<_> = (0..dice.roll(4)).filter_map(|_| admit(&rig)).collect();
        rig.trip();
        rig.wait_until_due();
        for _ in 0..dice.roll(40) {
            let end = dice.roll(12) as usize;
            if end > 8 {
                held.extend(admit(&rig));
            } else if end == 8 {
                rig.wait(dice.share() * 12.0);
            } else if !held.is_empty() {
                ends[end] += 1;
                let (probe, sent, _) = held.swap_remove(dice.roll(held.len() as u64) as usize);
                match end {
                    0 | 1 => drop(probe),
                    2 => drop(probe.cancelled(sent, rig.now)),
                    3 => drop(rig.end(probe, Health::Unknown)),
                    4 => drop(rig.end(probe, Health::Answered)),
                    5 => drop(rig.end(probe, Health::Success)),
                    6 => drop(rig.end(probe, Health::Failure)),
                    _ => {
                        let (tail, _) = probe.record(Health::Success, sent, rig.now);
                        tail.map(|it| it.broke(rig.now));
                    }
                }
            }
            let live = |(_, sent, generation): &&(Permit, Instant, u64)| {
                *generation == rig.breaker.generation() && rig.now - *sent < seconds(11.0)
            };
            let probes = held.iter().filter(live).count();
            assert!(rig.state() != State::HalfOpen || probes <= 3, "seed {seed}");
        }
        // Those still held are never heard of again.
        let patience = rig.now + seconds(11.0 + 30.0);
        while rig.ask().map(|it| rig.end(it.permit, Health::Unknown)).is_err() {
            assert!(rig.now <= patience, "wedged, seed {seed}: {:?}", rig.breaker);
            rig.wait(0.5);
        }
        let patience = rig.now + seconds(11.0 + 30.0);
        while rig.state() != State::Closed {
            assert!(rig.now <= patience, "never closes, seed {seed}: {:?}", rig.breaker);
            let _ = rig.ask().map(|it| rig.end(it.permit, Health::Success));
            rig.wait(0.5);
        }
        drop(held);
    }
    assert!(ends.iter().all(|often| *often > 1_000), "{ends:?}");
}

#[test]
fn a_probe_whose_lease_ran_out_fails_once_whatever_comes_of_it() {
    for health in [Health::Success, Health::Failure, Health::Answered] {
        let mut rig = Rig::due();
        let late = rig.admitted();
        rig.wait(11.0);
        let _second = rig.admitted(); // The question at which the lease is found to have run out.
        assert_eq!(late.record(health, rig.now, rig.now).0.map(|_| "a tail"), None);
        assert_eq!(rig.state(), State::HalfOpen, "one failure of three");
    }
}

#[test]
fn late_outcomes_do_not_decide_even_if_nobody_asked_in_between() {
    let mut rig = Rig::due();
    let (first, second) = (rig.admitted(), rig.admitted());
    rig.wait(12.0);
    assert_eq!(rig.end(first, Health::Success).map(|it| it.to), Some(State::Open));
    assert_eq!(rig.end(second, Health::Success), None);
}

#[test]
fn one_probe_is_one_failure_also_if_its_body_breaks() {
    let rig = Rig::due();
    let (tail, transition) = rig.admitted().record(Health::Failure, rig.now, rig.now);
    assert!(tail.is_none());
    assert_eq!(transition, None);
}
