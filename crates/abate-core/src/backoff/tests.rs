use std::time::Duration;

use proptest::prelude::*;

use super::{Backoff, Curve, DelaySource, Jitter};
use crate::rng::Seed;

const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    curve: Curve::Exponential { factor: 2.0 },
    cap: Duration::from_secs(10),
    jitter: Jitter::Full,
};

const NO: Duration = Duration::ZERO;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// The wait before a retry, drawn by the `call`th stream.
fn wait(backoff: &Backoff, retry: u32, previous: Duration, call: u64) -> Duration {
    backoff.delay(retry, previous, None, &mut Seed::new(7).stream(call)).0
}

#[test]
fn the_bound_doubles_up_to_the_cap() {
    let bounds: Vec<_> = (1..=9).map(|retry| BACKOFF.bound(retry).as_millis()).collect();
    assert_eq!(bounds, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
}

#[test]
fn a_fixed_bound_stays_and_a_polynomial_one_follows_its_power() {
    let fixed = Backoff { curve: Curve::Fixed, ..BACKOFF };
    assert!((1..=50).all(|retry| fixed.bound(retry) == fixed.base));
    let cubic = Backoff {
        base: seconds(1.0),
        cap: seconds(1e6),
        curve: Curve::Polynomial { power: 3 },
        jitter: Jitter::None,
    };
    let bounds: Vec<_> = (1..=5).map(|retry| cubic.bound(retry).as_secs()).collect();
    assert_eq!(bounds, [1, 2, 9, 28, 65]);
}

/// E12 of the experiments: the cumulative means that Sidekiq's own documentation gives.
#[test]
fn sidekiqs_waits_are_sidekiqs() {
    for count in 0..25_u32 {
        let curve = u64::from(count).pow(4) + 15;
        let retry = count + 1;
        let legacy = Backoff::SIDEKIQ_LEGACY;
        assert_eq!(legacy.bound(retry).as_secs(), curve);
        assert_eq!(legacy.ceiling(retry, NO).as_secs(), curve + 29 * u64::from(retry));
        assert_eq!(Backoff::SIDEKIQ.ceiling(retry, NO).as_secs(), curve + 10 * u64::from(retry));
        for call in 0..50 {
            let over = wait(&legacy, retry, NO, call) - legacy.bound(retry);
            assert_eq!(over.as_secs() % u64::from(retry), 0, "a multiple of the retry's number");
            assert_eq!(over.subsec_nanos(), 0);
        }
    }
    let cumulative = |retries: u32| {
        let mean = |retry| {
            let total: f64 = (0..2_000)
                .map(|call| wait(&Backoff::SIDEKIQ_LEGACY, retry, NO, call).as_secs_f64())
                .sum();
            total / 2_000.0
        };
        (1..=retries).map(mean).sum::<f64>()
    };
    for (retries, expected) in [(5, 646.0), (10, 4.52 * 3_600.0), (25, 20.46 * 86_400.0)] {
        let total = cumulative(retries);
        assert!((total / expected - 1.0).abs() < 0.01, "{retries}: {total} for {expected}");
    }
}

// BO-02
#[test]
fn a_late_retry_stays_within_the_cap_and_random_at_it() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Decorrelated] {
        let backoff = Backoff { jitter, ..BACKOFF };
        let mut rng = Seed::new(1).stream(0);
        let (mut previous, mut below) = (NO, 0);
        for retry in 1..=10_000 {
            let (delay, source) = backoff.delay(retry, previous, None, &mut rng);
            assert!(delay <= backoff.cap);
            assert!(jitter != Jitter::Decorrelated || delay >= backoff.base);
            assert_eq!(source, DelaySource::Backoff);
            below += u32::from(retry > 7 && delay < backoff.cap * 3 / 4);
            previous = delay;
        }
        let expected = match jitter {
            Jitter::Equal => 4_700..5_300,
            Jitter::Full => 7_200..7_800,
            _ => 7_200..9_500, // A walk between base and cap.
        };
        assert!(expected.contains(&below), "{jitter:?} is not spread at the cap: {below}");
    }
    assert_eq!(BACKOFF.bound(u32::MAX), BACKOFF.cap);
}

#[test]
fn a_bound_that_does_not_grow_costs_no_time_at_any_attempt() {
    let flat = Backoff { curve: Curve::Exponential { factor: 1.0 }, ..BACKOFF };
    assert_eq!(flat.bound(u32::MAX), flat.base);
    let nothing = Backoff { base: NO, ..BACKOFF };
    assert_eq!(nothing.bound(u32::MAX), NO);
    let steep = Backoff { curve: Curve::Polynomial { power: u32::MAX }, ..BACKOFF };
    assert_eq!(steep.bound(3), steep.cap);
}

#[test]
fn five_attempts_wait_three_quarters_of_a_second_in_the_median() {
    let mut totals: Vec<_> = (0..20_001)
        .map(|call| {
            let mut rng = Seed::new(5).stream(call);
            (1..=4).map(|retry| BACKOFF.delay(retry, NO, None, &mut rng).0).sum::<Duration>()
        })
        .collect();
    totals.sort();
    let at = |share: f64| totals[(share * 20_000.0) as usize].as_secs_f64();
    assert!((at(0.5) / 0.752 - 1.0).abs() < 0.02, "{}", at(0.5));
    assert!((at(0.99) / 1.30 - 1.0).abs() < 0.02, "{}", at(0.99));
    assert!(totals[20_000] <= seconds(1.5));
}

/// Kolmogorov and Smirnov: how far the drawn waits stray from the law, against what 10⁶ draws
/// would at most stray by chance once in a thousand times.
#[test]
fn each_jitter_follows_its_law() {
    const DRAWS: usize = 1_000_000;
    let whole = Backoff::SIDEKIQ_LEGACY;
    let cases: [(&str, Backoff, u32, Duration, f64, f64); 5] = [
        ("full", BACKOFF, 3, NO, 0.0, 0.4),
        ("full at the cap", BACKOFF, 50, NO, 0.0, 10.0),
        ("equal", Backoff { jitter: Jitter::Equal, ..BACKOFF }, 3, NO, 0.2, 0.4),
        (
            "decorrelated",
            Backoff { jitter: Jitter::Decorrelated, ..BACKOFF },
            3,
            seconds(0.5),
            0.1,
            1.5,
        ),
        ("sidekiq", Backoff::SIDEKIQ, 4, NO, 96.0, 136.0),
    ];
    for (name, backoff, retry, previous, least, most) in cases {
        let mut waits: Vec<_> = (0..DRAWS as u64)
            .map(|call| wait(&backoff, retry, previous, call).as_secs_f64())
            .collect();
        waits.sort_by(f64::total_cmp);
        let distance = waits
            .iter()
            .enumerate()
            .map(|(n, wait)| {
                let law = (wait - least) / (most - least);
                let below = law - n as f64 / DRAWS as f64;
                below.abs().max((below - 1.0 / DRAWS as f64).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / (DRAWS as f64).sqrt(), "{name}: {distance}");
    }
    let mut steps = [0_u32; 30];
    for call in 0..DRAWS as u64 {
        let over = wait(&whole, 4, NO, call) - whole.bound(4);
        steps[(over.as_secs() / 4) as usize] += 1;
    }
    let expected = DRAWS as f64 / 30.0;
    let chi: f64 = steps.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi < 58.3, "29 degrees of freedom, one in a thousand: {chi}");
}

#[test]
fn a_hint_is_a_floor_and_is_spread_above() {
    for (hint, most) in [(2.0, 2.5), (0.05, 0.15), (40.0, 50.0)] {
        let delays: Vec<_> = (0..1_000)
            .map(|call| BACKOFF.delay(1, NO, Some(seconds(hint)), &mut Seed::new(2).stream(call)))
            .collect();
        assert!(delays.iter().all(|(_, source)| *source == DelaySource::Hint));
        let (least, longest) = (delays.iter().min().unwrap().0, delays.iter().max().unwrap().0);
        assert!(least >= seconds(hint), "{hint} s was knocked at early: {least:?}");
        assert!(longest <= seconds(most + 1e-9));
        assert!(longest - least > (seconds(most) - seconds(hint)) / 2, "no spread");
    }
}

// RA-01, RA-15
#[test]
fn a_hint_of_nothing_leaves_the_jittered_backoff() {
    let with = BACKOFF.delay(3, NO, Some(NO), &mut Seed::new(9).stream(4));
    let without = BACKOFF.delay(3, NO, None, &mut Seed::new(9).stream(4));
    assert_eq!(with, without);
}

// RA-07
#[test]
fn the_longest_hint_saturates() {
    let hint = Some(Duration::MAX);
    assert_eq!(BACKOFF.delay(1, NO, hint, &mut Seed::new(1).stream(0)).0, Duration::MAX);
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let curve = prop_oneof![
        Just(Curve::Fixed),
        (1.0..1e300).prop_map(|factor| Curve::Exponential { factor }),
        (1_u32..9).prop_map(|power| Curve::Polynomial { power }),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        any::<u64>().prop_map(|n| Jitter::Added { per_retry: Duration::from_nanos(n) }),
        any::<u32>().prop_map(|steps| Jitter::AddedInSteps { steps }),
    ];
    let duration = || {
        any::<(u64, u32)>()
            .prop_map(|(s, n)| Duration::from_secs(s >> 1) + Duration::from_nanos(n.into()))
    };
    (curve, jitter, duration(), duration()).prop_map(|(curve, jitter, base, cap)| Backoff {
        base,
        curve,
        cap,
        jitter,
    })
}

proptest! {
    #[test]
    fn no_delay_leaves_its_range(
        backoff in any_backoff(),
        retry in 0_u32..=u32::MAX,
        previous in any::<u64>(),
    ) {
        let previous = Duration::from_nanos(previous);
        let (delay, _) = backoff.delay(retry, previous, None, &mut Seed::new(0).stream(1));
        prop_assert!(delay <= backoff.ceiling(retry, previous));
        prop_assert!(backoff.ceiling(retry, previous) <= backoff.cap);
        prop_assert!(backoff.bound(retry) <= backoff.cap);
    }
}
