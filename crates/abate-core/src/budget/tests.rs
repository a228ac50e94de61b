use std::time::{Duration, Instant};

use super::{Budget, Costs, Denied, Earn, Grant, Rules};
use crate::classify::Transient::{self, Server};
use crate::ratio::Ratio;

#[expect(clippy::disallowed_methods, reason = "any moment to start from")]
fn moment() -> Instant {
    Instant::now()
}

const NOW: Duration = Duration::ZERO;

fn rules(ratio: f64, floor: f64, start: f64) -> Rules {
    let (earn, costs) = (Earn::PerSuccess, Costs::ONE);
    Rules { ratio: Ratio::new(ratio).unwrap(), earn, costs, floor, start, burst: 1 }
}

/// Grants and sends until the budget says no.
fn spend(budget: &Budget, now: Instant) -> (u32, Denied) {
    let mut sent = 0;
    loop {
        match budget.grant(now, NOW, Duration::MAX, Server) {
            Ok(grant) => grant.sent(),
            Err(denied) => return (sent, denied),
        }
        sent += 1;
    }
}

fn granted(budget: &Budget, now: Instant) -> Grant {
    budget.grant(now, NOW, Duration::MAX, Server).expect("a token and a slot")
}

#[test]
fn a_success_earns_exactly_the_ratio() {
    for ratio in [0.05, 0.15, 0.3, 0.4, 0.6, 0.7, 0.9, 0.123_456_789, 1.0] {
        let now = moment();
        let budget = Budget::new(rules(ratio, 0.0, 0.0), now);
        for _ in 0..100_000 {
            budget.earn();
        }
        let (sent, denied) = spend(&budget, now);
        assert_eq!(sent, (ratio * 100_000.0) as u32, "{ratio}");
        assert_eq!(denied, Denied::Empty);
    }
}

#[test]
fn a_steady_income_settles_at_ratio_times_rate_times_tau() {
    for ratio in [0.05, 0.2, 0.7] {
        let mut now = moment();
        let budget = Budget::new(rules(ratio, 0.5, 0.0), now);
        for _ in 0..120_000 {
            now += Duration::from_millis(1);
            budget.count_call(now);
            budget.earn();
        }
        let expected = (ratio * 1_000.0 + 0.5) * 10.0;
        let tokens = budget.tokens(now);
        assert!((tokens / expected - 1.0).abs() < 0.002, "{tokens} for {expected}");
        assert!((budget.pace(now) / (ratio * 1_000.0 + 0.5) - 1.0).abs() < 0.002);
    }
}

#[test]
fn how_often_it_is_folded_changes_nothing() {
    let start = moment();
    let run = |fold: bool| {
        let budget = Budget::new(rules(0.2, 1.0, 5.0), start);
        let mut now = start;
        for _ in 0..30_000 {
            now += Duration::from_millis(1);
            budget.count_call(now);
            budget.earn();
            if fold {
                let _ = budget.tokens(now);
            }
        }
        budget.tokens(now)
    };
    let (often, seldom) = (run(true), run(false));
    assert!((often / seldom - 1.0).abs() < 0.01, "{often} and {seldom}");
}

// BU-02
#[test]
fn an_empty_budget_recovers_by_the_floor_and_by_success() {
    let mut now = moment();
    let budget = Budget::new(rules(0.2, 0.2, 2.0), now);
    assert_eq!(spend(&budget, now), (2, Denied::Empty));
    now += Duration::from_secs(600);
    assert!((budget.tokens(now) - 2.0).abs() < 0.01, "the floor's worth");
    assert_eq!(spend(&budget, now), (2, Denied::Empty));
    for _ in 0..10_000 {
        budget.earn();
    }
    assert!(budget.tokens(now) > 1_000.0, "a success earns at once");
}

#[test]
fn idle_wealth_fades() {
    let now = moment();
    let budget = Budget::new(rules(1.0, 0.0, 1_000.0), now);
    assert!((budget.tokens(now + Duration::from_secs(10)) - 370.0).abs() < 3.0);
    assert!(budget.tokens(now + Duration::from_secs(120)) < 0.2);
}

#[test]
fn an_unsent_retry_gives_back_token_and_slot() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 0.2, 2.0), now);
    drop(granted(&budget, now));
    assert_eq!(budget.tokens(now), 2.0);

    for _ in 0..3 {
        let mut slotted: Vec<_> = (0..2).map(|_| granted(&budget, now)).collect();
        for grant in &mut slotted {
            assert_eq!(grant.slot(now, Duration::MAX), Ok(Duration::ZERO), "its slot came back");
        }
        drop(slotted);
        assert_eq!(budget.tokens(now), 2.0);
    }
}

#[test]
fn a_retry_that_gets_no_slot_gives_its_token_back() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 0.2, 3.0), now);
    let far = Duration::from_secs(2);
    let ask = |_| budget.grant(now, far, Duration::MAX, Server).expect("too far off to be counted");
    let mut grants: Vec<_> = (0..3).map(ask).collect();
    let slots: Vec<_> = grants.iter_mut().map(|grant| grant.slot(now, Duration::MAX)).collect();
    assert_eq!(slots, [Ok(NOW), Ok(NOW), Err(Denied::Pace)], "5 s for the third");
    assert_eq!(budget.tokens(now), 0.0);
    drop(grants.pop());
    assert_eq!(budget.tokens(now), 1.0);
}

#[test]
fn a_slot_that_was_given_back_is_never_negative() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 10.0, 9.0), now);
    let mut grant = granted(&budget, now);
    grant.slot(now, Duration::MAX).unwrap();
    let later = now + Duration::from_secs(60);
    let _ = budget.tokens(later);
    drop(grant);
    let waits: Vec<_> = (0..3)
        .map(|_| {
            let mut grant = granted(&budget, later);
            let wait = grant.slot(later, Duration::MAX).unwrap();
            grant.sent();
            wait.as_millis()
        })
        .collect();
    assert_eq!(waits, [0, 0, 100], "burst of one, then ten a second");
}

#[test]
fn slots_come_at_the_pace() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 5.0, 100.0), now);
    let mut grants: Vec<_> = (0..6).map(|_| granted(&budget, now)).collect();
    let waits: Vec<_> = grants.iter_mut().map(|g| g.slot(now, Duration::MAX)).collect();
    let ms = |ms| Ok(Duration::from_millis(ms));
    assert_eq!(waits, [ms(0), ms(0), ms(200), ms(400), ms(600), ms(800)]);
    // A seventh is asked for, and answered without being taken, at the grant already.
    assert_eq!(grants.pop().map(drop), Some(()));
}

#[test]
fn a_slot_too_late_for_the_deadline_is_refused_as_that() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 5.0, 100.0), now);
    for _ in 0..3 {
        let mut grant = granted(&budget, now);
        grant.slot(now, Duration::MAX).unwrap();
        grant.sent();
    }
    let left = Duration::from_millis(449);
    assert_eq!(budget.grant(now, NOW, left, Server).unwrap_err(), Denied::Deadline);
    assert!(budget.grant(now, NOW, Duration::from_millis(450), Server).is_ok());
}

#[test]
fn those_who_will_ask_soon_are_counted_ahead() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 2.0, 100.0), now);
    let held: Vec<_> =
        (0..4).filter_map(|_| budget.grant(now, NOW, Duration::MAX, Server).ok()).collect();
    assert_eq!(held.len(), 4, "one at once, the others within a second at two a second");
    assert_eq!(budget.grant(now, NOW, Duration::MAX, Server).unwrap_err(), Denied::Pace);
    let far = Duration::from_secs(2);
    assert!(budget.grant(now, far, Duration::MAX, Server).is_ok(), "by then the level has drained");
    drop(held);
    assert!(
        budget.grant(now, NOW, Duration::MAX, Server).is_ok(),
        "the announcements were withdrawn"
    );
}

#[test]
fn without_any_pace_nothing_beyond_the_burst_is_sent() {
    let now = moment();
    let budget = Budget::new(rules(0.0, 0.0, 10.0), now);
    let mut first = granted(&budget, now);
    assert_eq!(first.slot(now, Duration::MAX), Ok(Duration::ZERO));
    first.sent();
    let mut second = granted(&budget, now);
    assert_eq!(second.slot(now, Duration::MAX), Ok(Duration::ZERO), "level equals the burst");
    second.sent();
    assert_eq!(budget.grant(now, NOW, Duration::MAX, Server).unwrap_err(), Denied::Pace);
}

// BU-09
#[test]
fn a_clock_reading_from_before_does_no_harm() {
    let start = moment() + Duration::from_secs(100);
    let budget = Budget::new(rules(0.5, 1.0, 10.0), start);
    let later = start + Duration::from_secs(5);
    let tokens = budget.tokens(later);
    budget.count_call(start);
    budget.earn();
    assert_eq!(budget.tokens(start - Duration::from_secs(50)), tokens);
    assert!(budget.tokens(later) > tokens, "counted at the next fold");
}

// BU-04
#[test]
fn nothing_is_lost_or_made_between_threads() {
    const THREADS: usize = 8;
    const EACH: usize = 20_000;
    let now = moment();
    let budget = Budget::new(Rules { burst: u32::MAX, ..rules(0.5, 0.0, 1_000.0) }, now);
    let sent: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let budget = budget.clone();
                scope.spawn(move || {
                    let mut sent = 0;
                    for step in 0..EACH {
                        budget.earn();
                        match budget.grant(now, NOW, Duration::MAX, Server) {
                            Ok(grant) if (step + worker) % 3 == 0 => drop(grant),
                            Ok(grant) => {
                                grant.sent();
                                sent += 1;
                            }
                            Err(_) => {}
                        }
                    }
                    sent
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let minted = 1_000.0 + 0.5 * (THREADS * EACH) as f64;
    assert_eq!(budget.tokens(now), minted - sent as f64);
}

#[test]
fn earning_per_call_goes_on_in_an_outage() {
    let now = moment();
    let budget = Budget::new(Rules { earn: Earn::PerCall, ..rules(0.1, 0.0, 0.0) }, now);
    for _ in 0..1_000 {
        budget.count_call(now);
    }
    assert_eq!(spend(&budget, now).0, 100);
    budget.earn();
    assert_eq!(budget.tokens(now), 0.0, "a success earns nothing on top");
}

#[test]
fn a_retry_costs_what_its_reason_costs_and_gives_back_the_same() {
    let now = moment();
    let costs = Costs::ONE.with(Transient::Ambiguous, 2.5).with(Transient::Asked, 0.0);
    let budget = Budget::new(Rules { costs, ..rules(0.0, 0.0, 4.0) }, now);
    let ask = |why| budget.grant(now, NOW, Duration::MAX, why);
    let dear = ask(Transient::Ambiguous).unwrap();
    assert_eq!(budget.tokens(now), 1.5);
    assert_eq!(ask(Transient::Ambiguous).unwrap_err(), Denied::Empty);
    drop(dear);
    assert_eq!(budget.tokens(now), 4.0);
    ask(Transient::Asked).unwrap().sent();
    ask(Transient::Unsent).unwrap().sent();
    assert_eq!(budget.tokens(now), 3.0);
}
