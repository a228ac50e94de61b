//! What the budget must show under load, in figures: the shipped decisions in virtual time.

#[cfg(test)]
mod simulation;

use abate_core::policy::Policy;
use simulation::{At, Attempt, MS, Reply, SECOND, Tally, evenly, not_before, reply, run, within};

const SEEDS: std::ops::Range<u64> = 0..2;

/// An answer, or a failure that comes back sooner.
fn fast(fails: bool) -> Reply {
    if fails { reply(503, 5 * MS) } else { reply(200, 20 * MS) }
}

#[test]
fn retries_are_exactly_the_ratio_of_successes() {
    for ratio in [0.05, 0.15, 0.3, 0.4, 0.6, 0.7, 0.9] {
        let policy = Policy::builder().with_budget_floor(0.0).with_budget_ratio(ratio);
        // Every other fails whatever is done, so that more retries are wanted than earned. 500 are
        // earned a second: what fades of the fraction of a token in stock is 0.01 % of them.
        let calls = evenly((1_000.0 / ratio) as u64, 0, 15 * SECOND);
        let tally =
            run(&policy.build().unwrap(), true, 1, calls, |call| fast(call.number % 2 == 1));
        let count = |times| within(times, 5 * SECOND, 15 * SECOND) as f64;
        let (retries, successes) = (count(&tally.granted), count(&tally.successes));
        let off = retries / successes / ratio - 1.0;
        println!("ratio {ratio}: {retries} retries, {successes} successes, off by {off:.5}");
        assert!(off.abs() < 0.001, "{ratio}: {retries} for {successes}");
        assert!(tally.stopped["budget"] > 1_000, "the stock never ran out");
    }
}

#[test]
fn an_outage_after_health_adds_next_to_nothing() {
    let (from, to) = (10 * SECOND, 70 * SECOND);
    for seed in SEEDS {
        let dependency = |call: Attempt| fast(call.at >= from);
        let tally = run(&Policy::default(), true, seed, evenly(1_000, 0, to), dependency);
        let (mean, worst) = (tally.load(from, to), tally.worst_second(from, to));
        let lost = tally.lost_to_pace();
        println!("outage: {mean:.4} in the mean, {worst:.4} at worst, {lost:.5} lost");
        assert!(mean <= 1.05, "{mean}");
        assert!(worst <= 1.3, "{worst}");
        assert!(lost <= 0.005, "{lost}");
    }
}

/// What the others are measured against: the simulation can fail.
#[test]
fn without_a_budget_the_same_outage_triples_the_load() {
    let (from, to) = (10 * SECOND, 15 * SECOND);
    let dependency = |call: Attempt| fast(call.at >= from);
    let tally = run(&Policy::default(), false, 1, evenly(1_000, 0, to), dependency);
    let worst = tally.worst_second(from, to);
    println!("outage without a budget: {worst:.4} at worst");
    assert!(worst > 2.9, "{worst}");
}

#[test]
fn a_tenth_of_faults_is_carried() {
    for seed in SEEDS {
        let calls = evenly(1_000, 0, 60 * SECOND);
        let tally = run(&Policy::default(), true, seed, calls, |call| fast(call.luck < 0.1));
        let (success, load) = (tally.success(), tally.load(0, 60 * SECOND));
        println!("10 % of faults: {success:.5} succeed, {load:.4} attempts");
        assert!(success >= 0.998, "{success}: {:?}", tally.stopped);
    }
}

/// Busy at 1000/s for a minute, then quiet at 50/s; down from `down` on.
fn busy_then_quiet(seed: u64, down: At) -> Tally {
    let (quiet, end) = (60 * SECOND, 100 * SECOND);
    let calls = evenly(1_000, 0, quiet).chain(evenly(50, quiet, end));
    run(&Policy::default(), true, seed, calls, |call| fast(call.at >= down))
}

#[test]
fn wealth_from_busier_times_is_not_spent_in_one_second() {
    for seed in SEEDS {
        let down = 80 * SECOND;
        let tally = busy_then_quiet(seed, down);
        let worst = tally.worst_second(down, 100 * SECOND);
        println!("1000/s, 50/s for 20 s, down: {worst:.4} at worst");
        assert!(worst <= 1.4, "{worst}");
    }
}

/// The pace follows with a time constant of one second: traffic that falls twentyfold at the very
/// moment of the outage keeps the pace of its better days for three seconds, which is still far
/// below the load of the second before.
#[test]
fn a_pace_from_busier_times_is_gone_in_three_seconds() {
    for seed in SEEDS {
        let (down, end) = (60 * SECOND, 100 * SECOND);
        let tally = busy_then_quiet(seed, down);
        let second = |n| tally.load(down + n * SECOND, down + (n + 1) * SECOND);
        let first = [second(0), second(1), second(2), second(3)];
        let settled = tally.worst_second(down + 3 * SECOND, end);
        println!("1000/s, 50/s and down at once: {first:.2?}, then {settled:.4} at worst");
        assert!(settled <= 1.4, "{settled}");
        assert!(first[0] * 50.0 < 0.2 * 1_000.0, "{} attempts at once", first[0] * 50.0);
    }
}

// E15c
#[test]
fn a_response_is_hardly_ever_given_up_for_a_retry_that_the_pace_refuses() {
    let flapping = |call: Attempt| fast(call.at % (10 * SECOND) >= 8 * SECOND);
    let a_class_that_fails = |call: Attempt| fast(call.number % 10 < 3);
    for seed in SEEDS {
        for (name, tally) in [
            ("flapping", run(&Policy::default(), true, seed, minute(), flapping)),
            ("30 % fail", run(&Policy::default(), true, seed, minute(), a_class_that_fails)),
        ] {
            let (lost, worst) = (tally.lost_to_pace(), tally.worst_second(0, 60 * SECOND));
            println!("{name}: {lost:.5} lost to the pace, {worst:.4} attempts at worst");
            assert!(lost <= 0.005, "{name}: {lost}");
            assert!(worst <= 1.3, "{name}: {worst}");
        }
    }
}

fn minute() -> impl Iterator<Item = At> {
    evenly(1_000, 0, 60 * SECOND)
}

// E15b
#[test]
fn a_burst_after_idling_is_carried_by_its_own_earnings() {
    let dependency = |call: Attempt| match call.luck < 0.1 {
        true => reply(503, 200 * MS),
        false => reply(200, 50 * MS),
    };
    let success = (0..20).map(|seed| {
        let burst = std::iter::repeat_n(600 * SECOND, 1_000);
        run(&Policy::default(), true, seed, burst, dependency).success()
    });
    let worst = success.fold(1.0, f64::min);
    println!("idle, then 1000 at once: {worst:.4} succeed, in the worst of 20 runs");
    assert!(worst >= 0.99, "{worst}");
}

#[test]
fn one_date_for_all_does_not_wake_them_all_at_once() {
    for (up, date) in [(12, 12), (20, 20), (20, 25)] {
        let (down, up, date) = (10 * SECOND, up * SECOND, date * SECOND);
        let end = date + 6 * SECOND;
        let dependency = |call: Attempt| match (down..up).contains(&call.at) {
            true => not_before(date, call.at, 5 * MS),
            false => fast(false),
        };
        let worst = |budgeted| {
            let calls = evenly(1_000, 0, end);
            let tally = run(&Policy::default(), budgeted, 1, calls, dependency);
            (tally.worst_second(down, end), tally.lost_to_pace())
        };
        let ((worst, lost), (unbudgeted, _)) = (worst(true), worst(false));
        println!("dates: {worst:.4} at worst, {lost:.5} lost; without a budget {unbudgeted:.2}");
        assert!(worst <= 1.3, "{worst}");
        assert!(unbudgeted > 2.0, "{unbudgeted}");
    }
}
