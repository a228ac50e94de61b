//! What trips it, and what does not.

use super::*;
use crate::classify::Classifier;
use crate::ratio::Ratio;

/// `f >= n/2 + √n` with `n = f + s`, in whole numbers.
fn significant(failures: u64, successes: u64) -> bool {
    failures >= successes && (failures - successes).pow(2) >= 4 * (failures + successes)
}

#[test]
fn a_rate_trips_at_half_and_two_standard_deviations() {
    for successes in [6, 7, 20, 40, 99, 400, 1_000] {
        let mut rig = Rig::new();
        rig.calls(successes, Health::Success);
        rig.wait(2.0);
        let failures = rig.fail_until_open(0.0);
        let [s, f] = [u64::from(successes), failures];
        assert!(significant(f, s) && !significant(f - 1, s), "{f} beside {s}");
    }
}

#[test]
fn a_threshold_that_significance_would_push_above_all_is_all() {
    let rules = Rules { failure_rate: Ratio::new(0.9).unwrap(), ..Rules::default() };
    let mut rig = Rig::with(rules);
    let pending: Vec<_> = (0..10).map(|_| rig.admitted()).collect();
    rig.wait(2.0);
    let ends: Vec<_> = pending.into_iter().map(|it| rig.end(it, Health::Failure)).collect();
    assert!(ends[..9].iter().all(Option::is_none));
    assert!(ends[9].is_some(), "ten of ten, although 0.9·10 + 2·√0.9 is 10.9");
}

#[test]
fn fewer_than_ten_calls_are_no_rate() {
    let mut rig = Rig::new();
    rig.call(Health::Success);
    rig.wait(2.0);
    rig.calls(8, Health::Failure);
    assert!(rig.call(Health::Failure).is_some(), "nine of ten");
}

#[test]
fn failures_trip_nothing_within_two_seconds() {
    let mut rig = Rig::new();
    for _ in 0..199 {
        rig.calls(10, Health::Failure);
        rig.wait(0.01);
    }
    rig.calls(10, Health::Failure);
    rig.wait(0.01);
    let tripped = rig.call(Health::Failure).expect("two seconds are over");
    assert_eq!((tripped.from, tripped.to), (State::Closed, State::Open));
}

#[test]
fn calls_under_way_count_as_calls() {
    let mut rig = Rig::new();
    let mut pending: Vec<_> = (0..100).map(|_| rig.admitted()).collect();
    rig.wait(2.0);
    for permit in pending.drain(..59) {
        assert_eq!(rig.end(permit, Health::Failure), None);
    }
    assert!(rig.end(pending.remove(0), Health::Failure).is_some(), "sixty of a hundred");
}

#[test]
fn what_says_nothing_is_not_among_the_calls() {
    let mut rig = Rig::new();
    let mut failing: Vec<_> = (0..20).map(|_| rig.admitted()).collect();
    rig.calls(500, Health::Answered);
    rig.calls(500, Health::Unknown);
    for _ in 0..500 {
        drop(rig.admitted());
    }
    rig.wait(2.0);
    for permit in failing.drain(..14) {
        assert_eq!(rig.end(permit, Health::Failure), None);
    }
    assert!(rig.end(failing.remove(0), Health::Failure).is_some(), "fifteen of twenty");
}

#[test]
fn what_is_older_than_the_window_is_forgotten() {
    let mut rig = Rig::new();
    rig.calls(500, Health::Failure);
    rig.wait(1.0);
    rig.call(Health::Success);
    rig.wait(5.5);
    rig.calls(9, Health::Failure);
    rig.wait(2.0);
    rig.call(Health::Success);
    assert!(rig.call(Health::Failure).is_some(), "ten of eleven, of late");
}

#[test]
fn what_is_within_the_window_is_not() {
    let mut rig = Rig::new();
    rig.calls(9, Health::Failure);
    rig.call(Health::Success);
    rig.wait(4.4);
    assert!(rig.call(Health::Failure).is_some(), "ten of eleven");
}

// CB-11
#[test]
fn of_eight_threads_whose_failures_trip_it_one_opens_it() {
    for _ in 0..200 {
        let mut rig = Rig::new();
        let permits: Vec<_> = (0..8).map(|_| [(); 8].map(|()| rig.admitted())).collect();
        rig.wait(2.0);
        let start = std::sync::Barrier::new(8);
        let fail = |permits: [Permit; 8]| {
            start.wait();
            permits.map(|it| rig.end(it, Health::Failure)).iter().flatten().count()
        };
        let opened: usize = std::thread::scope(|scope| {
            let fail = &fail;
            let threads = permits.into_iter().map(|permits| scope.spawn(move || fail(permits)));
            threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((opened, rig.breaker.generation()), (1, 1));
    }
}

#[test]
fn after_a_million_successes_an_outage_opens_it_within_its_window() {
    let mut rig = Rig::new();
    for _ in 0..1_000_000 {
        rig.call(Health::Success);
        rig.wait(0.001);
    }
    let outage = rig.now;
    rig.fail_until_open(0.001);
    let opened = rig.now - outage;
    assert!(opened <= Rules::WINDOW, "{opened:?}");
    assert!(opened >= Rules::EVIDENCE, "{opened:?}");
}

#[test]
fn ten_failures_in_a_row_trip_it_at_any_rate_of_calls() {
    for pause in [0.25, 1.0, 60.0, 3_600.0, 86_400.0] {
        let mut rig = Rig::new();
        for _ in 0..9 {
            assert_eq!(rig.call(Health::Failure), None);
            rig.wait(pause);
        }
        assert!(rig.call(Health::Failure).is_some(), "one call in {pause} s");
    }
}

#[test]
fn ten_failures_in_a_row_trip_it_only_over_two_seconds() {
    let mut rig = Rig::new();
    // Beside a thousand calls under way no rate is significant.
    let _pending: Vec<_> = (0..1_000).map(|_| rig.admitted()).collect();
    rig.calls(20, Health::Failure);
    rig.wait(1.999);
    rig.calls(20, Health::Failure);
    rig.wait(0.001);
    assert!(rig.call(Health::Failure).is_some());
}

#[test]
fn a_success_ends_a_streak() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        for _ in 0..9 {
            assert_eq!(rig.call(Health::Failure), None);
            rig.wait(1.0);
        }
        rig.call(Health::Success);
    }
    for _ in 0..9 {
        assert_eq!(rig.call(Health::Failure), None);
        rig.wait(1.0);
    }
    assert!(rig.call(Health::Failure).is_some());
}

#[test]
fn what_says_nothing_neither_ends_nor_lengthens_a_streak() {
    let mut rig = Rig::new();
    for _ in 0..9 {
        assert_eq!(rig.call(Health::Failure), None);
        rig.wait(1.0);
        rig.calls(3, Health::Answered);
        rig.calls(3, Health::Unknown);
        drop(rig.admitted());
    }
    assert_eq!(rig.state(), State::Closed);
    assert!(rig.call(Health::Failure).is_some());
}

// CB-06
#[test]
fn callers_that_lose_patience_do_not_open_it() {
    let mut rig = Rig::new();
    for _ in 0..10 {
        let sent = rig.now;
        let permits: Vec<_> = (0..10).map(|_| rig.admitted()).collect();
        rig.wait(0.25);
        for (n, permit) in permits.into_iter().enumerate() {
            if n % 2 == 0 {
                assert_eq!(permit.cancelled(sent, rig.now), None);
            } else {
                drop(permit);
            }
        }
    }
    assert_eq!(rig.state(), State::Closed);
    assert_eq!(rig.breaker.generation(), 0);
    rig.call(Health::Success);
}

// CB-06
#[test]
fn a_call_given_up_after_half_its_timeout_has_failed() {
    for (timeout, threshold) in [(None, 5.0), (Some(seconds(3.0)), 1.5)] {
        let rules = Rules { attempt_timeout: timeout, ..Rules::default() };
        for (waited, opens) in [(threshold - 0.001, false), (threshold, true)] {
            let mut rig = Rig::with(rules);
            for _ in 0..10 {
                let (permit, sent) = (rig.admitted(), rig.now);
                rig.wait(waited);
                permit.cancelled(sent, rig.now);
            }
            assert_eq!(rig.state() == State::Open, opens, "{waited} s of {timeout:?}");
        }
    }
}

// CL-04
#[test]
fn trailers_are_judged_by_the_rules_of_the_breaker() {
    let grpc = Classifier::default().with_judge(crate::grpc::judge);
    for (classifier, code, health) in [
        (grpc, "14", Health::Failure),
        (grpc, "8", Health::Answered),
        (grpc, "0", Health::Success),
        (Classifier::default(), "14", Health::Success),
    ] {
        let rig = Rig::with(Rules { classifier, ..Rules::default() });
        let tail = rig.end_with_body(rig.admitted(), Health::Success);
        let code = http::HeaderValue::from_static(code);
        let trailers = http::HeaderMap::from_iter([(crate::grpc::STATUS.clone(), code)]);
        assert_eq!(tail.health(&trailers), health);
    }
}

#[test]
fn a_body_that_breaks_adds_one_failure() {
    let mut rig = Rig::new();
    for n in 1..=10 {
        let tail = rig.end_with_body(rig.admitted(), Health::Answered);
        assert_eq!(tail.broke(rig.now).is_some(), n == 10, "at number {n}");
        rig.wait(1.0);
    }
    assert_eq!(rig.state(), State::Open);
}

#[test]
fn a_body_that_is_read_to_its_end_adds_nothing() {
    let mut rig = Rig::new();
    for _ in 0..100 {
        drop(rig.end_with_body(rig.admitted(), Health::Success));
        rig.call(Health::Failure);
        rig.wait(0.1);
    }
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn an_old_clock_reading_does_not_take_the_bucket_from_a_newer_one() {
    let mut rig = Rig::new();
    rig.wait(6.0);
    rig.call(Health::Success);
    rig.calls(100, Health::Failure);
    let old = rig.now - seconds(5.0);
    rig.breaker.admit(old).unwrap().permit.record(Health::Failure, old, old);
    rig.wait(2.0);
    rig.call(Health::Success);
    assert!(rig.call(Health::Failure).is_some());
}

/// Ten buckets of two counts, and of two more for threads apart, and a lease for each probe: nothing
/// grows with traffic.
#[test]
fn what_it_keeps_has_a_fixed_size() {
    assert!(size_of::<crate::breaker::machine::Machine>() <= 3 * 1024);
    assert!(size_of::<Permit>() <= 40);
}
