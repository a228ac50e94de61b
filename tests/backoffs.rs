//! The waits that policies describe, as they pass between attempts.

use std::time::Duration;

use abate::{Backoff, Curve, Jitter, Policy, PolicyBuilder, RetryLayer};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The waits of a call of six attempts that all fail, for each of many seeds.
async fn waits(policy: PolicyBuilder) -> Result<Vec<Vec<Duration>>, BoxError> {
    let policy = policy.with_attempts(6).with_total_timeout(Duration::MAX).build()?;
    let mut all = Vec::new();
    for seed in 0..200 {
        let script = Script::of([Answer::status(503)]);
        let layer = RetryLayer::new(policy.clone()).without_budget().with_seed(seed);
        layer.layer(script.clone()).oneshot(get()).await?;
        let at: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
        assert_eq!(at.len(), 6);
        all.push(at.windows(2).map(|pair| pair[1] - pair[0]).collect());
    }
    Ok(all)
}

/// That the waits before each retry lie within its bounds and come near both ends.
fn assert_within(waits: &[Vec<Duration>], bounds: [(Duration, Duration); 5]) {
    // What timers of a millisecond may be late by, each way.
    let tick = millis(2);
    for (retry, (least, most)) in bounds.into_iter().enumerate() {
        let mut waits: Vec<_> = waits.iter().map(|it| it[retry]).collect();
        waits.sort();
        let (shortest, longest) = (waits[0], waits[waits.len() - 1]);
        let edge = (most - least) / 20 + tick;
        let range = format!("retry {}: {shortest:?}..{longest:?}", retry + 1);
        assert!(shortest >= least && longest <= most + tick, "{range} in {least:?}..{most:?}");
        assert!(shortest <= least + edge && longest + edge >= most, "{range} is not all of it");
        let middle = waits[waits.len() / 2];
        assert!(middle.abs_diff((least + most) / 2) <= (most - least) / 6 + tick, "{middle:?}");
    }
}

fn steps(unit: Duration, steps: [(u32, u32); 5]) -> [(Duration, Duration); 5] {
    steps.map(|(least, most)| (unit * least, unit * most))
}

#[tokio::test(start_paused = true)]
async fn by_default_evenly_from_nothing_to_a_bound_that_doubles() -> Tested {
    let waits = waits(Policy::builder()).await?;
    assert_within(&waits, steps(millis(100), [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn with_half_of_it_certain() -> Tested {
    let waits = waits(Policy::builder().with_jitter(Jitter::Equal)).await?;
    assert_within(&waits, steps(millis(50), [(1, 2), (2, 4), (4, 8), (8, 16), (16, 32)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_jitter_exactly_the_bound_and_never_above_the_cap() -> Tested {
    let policy = Policy::builder().with_jitter(Jitter::None).with_cap(millis(500));
    let exact = steps(millis(100), [(1, 1), (2, 2), (4, 4), (5, 5), (5, 5)]);
    assert_within(&waits(policy).await?, exact);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn at_the_cap_as_random_as_anywhere() -> Tested {
    let waits = waits(Policy::builder().with_cap(millis(200))).await?;
    assert_within(&waits, steps(millis(100), [(0, 1), (0, 2), (0, 2), (0, 2), (0, 2)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn by_any_factor() -> Tested {
    let policy = Policy::builder().with_curve(Curve::Exponential { factor: 3.0 });
    let waits = waits(policy.with_jitter(Jitter::None)).await?;
    assert_within(&waits, steps(millis(100), [(1, 1), (3, 3), (9, 9), (27, 27), (81, 81)]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_same_every_time() -> Tested {
    let waits = waits(Policy::builder().with_curve(Curve::Fixed)).await?;
    assert_within(&waits, steps(millis(100), [(0, 1); 5]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn by_a_power_of_the_retries_so_far() -> Tested {
    let policy = Policy::builder().with_curve(Curve::Polynomial { power: 2 });
    let policy = policy.with_cap(seconds(12)).with_jitter(Jitter::None);
    let exact = [100, 1_100, 4_100, 9_100, 12_000].map(|ms| (millis(ms), millis(ms)));
    assert_within(&waits(policy).await?, exact);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn decorrelated_up_to_three_times_the_wait_before() -> Tested {
    let policy = Policy::builder().with_jitter(Jitter::Decorrelated).with_cap(seconds(2));
    let waits = waits(policy).await?;
    for waits in &waits {
        let mut previous = millis(100);
        for wait in waits {
            let most = (previous * 3).min(seconds(2)) + millis(8);
            assert!(*wait >= millis(100) && *wait <= most, "{wait:?} after {previous:?}");
            previous = *wait;
        }
    }
    let longest = waits.iter().flatten().max().copied().unwrap_or_default();
    assert!(longest > millis(1_800), "{longest:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn sidekiqs_of_today() -> Tested {
    let waits = waits(Policy::builder().with_backoff(Backoff::SIDEKIQ)).await?;
    let bounds = [(15, 25), (16, 36), (31, 61), (96, 136), (271, 321)];
    assert_within(&waits, steps(seconds(1), bounds));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn sidekiqs_of_before_in_whole_seconds() -> Tested {
    let waits = waits(Policy::builder().with_backoff(Backoff::SIDEKIQ_LEGACY)).await?;
    let bounds = [(15, 44), (16, 74), (31, 118), (96, 212), (271, 416)];
    assert_within(&waits, steps(seconds(1), bounds));
    for waits in &waits {
        for (retry, wait) in (1..).zip(waits) {
            let base = [15, 16, 31, 96, 271][retry as usize - 1];
            let above = wait.as_millis() as u64 - base * 1_000;
            assert!(above % (retry * 1_000) <= 2, "{wait:?} before retry {retry}");
        }
    }
    Ok(())
}

// BO-04
#[tokio::test(start_paused = true)]
async fn waits_of_next_to_nothing_are_waits_and_never_an_error() -> Tested {
    for base in [Duration::ZERO, Duration::from_nanos(1), Duration::from_micros(1), millis(1)] {
        let policy = Policy::builder().with_base(base).with_cap(base);
        for waits in waits(policy).await? {
            assert!(waits.iter().all(|wait| *wait <= base + millis(2)), "{base:?}: {waits:?}");
        }
    }
    Ok(())
}

// BO-02
#[tokio::test(start_paused = true)]
async fn the_ten_thousandth_attempt_waits_no_longer_than_the_cap() -> Tested {
    for jitter in [Jitter::None, Jitter::Full, Jitter::Decorrelated] {
        let policy = Policy::builder().with_attempts(10_000).with_jitter(jitter);
        let policy = policy.with_cap(seconds(300)).with_total_timeout(Duration::MAX).build()?;
        let script = Script::of([Answer::status(503)]);
        let layer = RetryLayer::new(policy).without_budget().with_seed(1);
        layer.layer(script.clone()).oneshot(get()).await?;
        let arrived = script.arrived();
        assert_eq!(arrived.len(), 10_000);
        let longest = arrived.windows(2).map(|pair| pair[1].at - pair[0].at).max();
        let longest = longest.unwrap_or_default();
        assert!(longest > seconds(290) && longest <= seconds(300) + millis(2), "{longest:?}");
    }
    Ok(())
}
