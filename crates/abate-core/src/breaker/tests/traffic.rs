//! Whole traffic with latencies: how much of it a healthy dependency is refused.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const ANSWER: Duration = Duration::from_millis(20);
const QUICK: Duration = Duration::from_millis(5);

/// The share refused of `rate` calls per second over `length`, each ending as `outcome` says.
fn refused(rate: u32, length: u32, mut outcome: impl FnMut() -> (Health, Duration)) -> f64 {
    let rig = Rig::new();
    let mut pending = BinaryHeap::new();
    let mut permits = Vec::new();
    let mut refused = 0;
    for n in 0..rate * length {
        let at = Duration::from_secs(1) / rate * n;
        while let Some(&Reverse((end, which))) = pending.peek()
            && end <= at
        {
            pending.pop();
            let (permit, health): (Permit, _) = Option::take(&mut permits[which]).unwrap();
            permit.record(health, rig.now, rig.now + end);
        }
        match rig.breaker.admit(rig.now + at) {
            Ok(admitted) => {
                let (health, takes) = outcome();
                pending.push(Reverse((at + takes, permits.len())));
                permits.push(Some((admitted.permit, health)));
            }
            Err(_) => refused += 1,
        }
    }
    f64::from(refused) / f64::from(rate * length)
}

#[test]
fn bad_luck_alone_refuses_nobody() {
    for seed in 0..3 {
        for (rate, length) in [(1_000, 60), (10, 600)] {
            let mut dice = Dice::new(seed);
            let share = refused(rate, length, || match dice.share() < 0.2 {
                true => (Health::Failure, QUICK),
                false => (Health::Success, ANSWER),
            });
            assert!(share < 0.001, "{share} of {rate}/s refused for 20 % of faults");
        }
    }
}

// E14
#[test]
fn quick_failures_beside_slow_answers_refuse_nobody() {
    for seed in 0..3 {
        let mut dice = Dice::new(seed);
        let share = refused(1_000, 60, || match dice.share() < 0.3 {
            true => (Health::Failure, QUICK),
            false => (Health::Success, seconds(2.0)),
        });
        assert!(share <= 0.01, "{share} refused beside answers of 2 s");
    }
}

// E14
#[test]
fn quick_failures_beside_answers_that_vary_refuse_nobody() {
    for seed in 0..5 {
        let mut dice = Dice::new(seed);
        let share = refused(100, 300, || match dice.share() < 0.3 {
            true => (Health::Failure, QUICK),
            // Exponential, 6 s in the mean, cut by the timeout at 30 s.
            false => match dice.share().max(f64::MIN_POSITIVE).ln() * -6.0 {
                late if late >= 30.0 => (Health::Failure, seconds(30.0)),
                answer => (Health::Success, seconds(answer)),
            },
        });
        assert!(share <= 0.01, "{share} refused beside answers of 6 s in the mean");
    }
}

#[test]
fn an_outage_is_refused_and_health_after_it_is_not() {
    let mut calls = 0;
    let share = refused(1_000, 60, || {
        calls += 1;
        // 4 s of health, then every call fails until 4 s more would have been let through.
        if calls <= 4_000 { (Health::Success, ANSWER) } else { (Health::Failure, QUICK) }
    });
    let let_through = (1.0 - share) * 60.0;
    assert!((6.0..9.0).contains(&let_through), "{let_through} s of calls let through");
}
