//! Figures under load, through tower's `Retry`.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abate::decisions::budget::Earn;
use abate::{Attempt, Policy, PolicyBuilder, RetryBudgetLayer};
use abate_tests::rig::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use tokio::time::{Instant, interval, sleep};
use tower::retry::Retry;
use tower::{Layer, ServiceExt, service_fn};

use super::{Tested, TowerRetries};

/// What a dependency saw, by second.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    first: u32,
    repeats: u32,
    successes: u32,
}

/// `per_milli` calls each millisecond for `length`, through tower's retry on the budget of `policy`,
/// to a dependency that answers call `n`, from 0, at a time as `fails` says.
async fn load(
    policy: PolicyBuilder,
    retries: TowerRetries,
    per_milli: usize,
    length: Duration,
    fails: fn(usize, Duration) -> bool,
) -> Result<Vec<Second>, tower::BoxError> {
    let seen = Arc::new(Mutex::new(vec![Second::default(); length.as_secs() as usize + 3]));
    let start = Instant::now();
    let dependency = service_fn({
        let seen = Arc::clone(&seen);
        move |request: Request<Full<Bytes>>| {
            let number = request.extensions().get().copied();
            let at = start.elapsed();
            let failed = fails(number.map_or(0, |Call(number)| number), at);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let second = &mut seen[at.as_secs() as usize];
            match request.extensions().get::<Attempt>() {
                Some(_) => second.repeats += 1,
                None => second.first += 1,
            }
            second.successes += u32::from(!failed);
            async move {
                let (code, takes) = if failed { (503, 5) } else { (200, 20) };
                sleep(Duration::from_millis(takes)).await;
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
                Ok::<_, Infallible>(response)
            }
        }
    });
    let budget = RetryBudgetLayer::new(policy.build()?).layer(dependency);
    let mut ticks = interval(Duration::from_millis(1));
    for n in 0..length.as_millis() as usize * per_milli {
        if n % per_milli == 0 {
            ticks.tick().await;
        }
        let mut request = get();
        request.extensions_mut().insert(Call(n));
        // Evenly from nothing to 100 ms, by a golden step.
        let wait = retries.wait.mul_f64((n as f64 * 0.618_033_988).fract());
        tokio::spawn(Retry::new(TowerRetries { wait, ..retries }, budget.clone()).oneshot(request));
    }
    sleep(Duration::from_secs(2)).await;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(seen)
}

#[derive(Debug, Clone, Copy)]
struct Call(usize);

fn sum(seconds: &[Second], of: fn(&Second) -> u32) -> f64 {
    f64::from(seconds.iter().map(of).sum::<u32>())
}

#[tokio::test(start_paused = true)]
async fn retries_are_exactly_the_ratio_of_successes() -> Tested {
    // Every other call fails whatever is done, so that more is wanted than earned. What fades of
    // the fraction of a token in stock is some 0.05 a second, of a hundred and more.
    for (ratio, per_milli) in [(0.05, 5), (0.3, 1), (0.7, 1)] {
        let policy = Policy::builder().with_budget_floor(0.0).with_budget_ratio(ratio);
        let length = Duration::from_secs(12);
        let retries = TowerRetries { left: 1, ..TowerRetries::MARKING };
        let seen = load(policy, retries, per_milli, length, |n, _| n % 2 == 1).await?;
        let steady = &seen[2..12];
        let (repeats, successes) = (sum(steady, |it| it.repeats), sum(steady, |it| it.successes));
        let off = repeats / successes / ratio - 1.0;
        println!("ratio {ratio}: {repeats} repeats, {successes} successes, off by {off:.5}");
        assert!(off.abs() < 0.002, "{ratio}: {repeats} for {successes}");
    }
    Ok(())
}

fn down_from_ten_seconds(_: usize, at: Duration) -> bool {
    at >= Duration::from_secs(10)
}

/// The load of an outage of `length` after ten seconds of health: in the mean, and at worst.
#[expect(clippy::print_stdout, reason = "figures to look at")]
async fn outage(retries: TowerRetries, length: usize) -> Result<(f64, f64), tower::BoxError> {
    let (policy, all) = (Policy::builder(), Duration::from_secs(length as u64 + 10));
    let seen = load(policy, retries, 1, all, down_from_ten_seconds).await?;
    let outage = &seen[10..length + 10];
    let mean = 1.0 + sum(outage, |it| it.repeats) / sum(outage, |it| it.first);
    let of = |second: &Second| 1.0 + f64::from(second.repeats) / f64::from(second.first);
    let worst = outage.iter().map(of).fold(0.0, f64::max);
    println!("outage: {mean:.4} in the mean, {worst:.4} at worst, {:?}", retries.wait);
    Ok((mean, worst))
}

const WAITING: TowerRetries =
    TowerRetries { wait: Duration::from_millis(100), ..TowerRetries::MARKING };

#[tokio::test(start_paused = true)]
async fn an_outage_after_health_adds_next_to_nothing() -> Tested {
    let (mean, worst) = outage(WAITING, 60).await?;
    assert!(mean <= 1.05, "{mean}");
    assert!(worst <= 1.3, "{worst}");
    assert!(worst > 1.1, "{worst}: what was earned is worth something");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn retries_that_do_not_wait_at_all_are_paced_all_the_same() -> Tested {
    let (_, worst) = outage(TowerRetries::MARKING, 10).await?;
    assert!(worst <= 1.3, "{worst}");
    Ok(())
}

/// What the other is measured against: the figures can be bad.
#[tokio::test(start_paused = true)]
async fn without_marks_the_same_outage_triples_the_load() -> Tested {
    let policy = Policy::builder();
    let silent = TowerRetries { marks: false, ..WAITING };
    let seen = load(policy, silent, 1, Duration::from_secs(15), down_from_ten_seconds).await?;
    // Repeats that are not marked look like first attempts here.
    let arrived = sum(&seen[11..15], |it| it.first) / 4_000.0;
    assert!(arrived > 2.9, "{arrived}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_tenth_of_faults_is_carried() -> Tested {
    let policy = Policy::builder();
    // By call and moment, so that a repeat has luck of its own.
    let luck = |n: usize, at: Duration| {
        let mixed = (n as u64 ^ (at.as_micros() as u64) << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32 & 0xFFFF < 6_554
    };
    let seen = load(policy, WAITING, 1, Duration::from_secs(20), luck).await?;
    let (first, ok) = (sum(&seen, |it| it.first), sum(&seen, |it| it.successes));
    println!("10 % of faults: {:.5} succeed, {} repeats", ok / first, sum(&seen, |it| it.repeats));
    assert!(ok / first >= 0.998, "{ok} of {first}");
    Ok(())
}

// BU-06
#[tokio::test(start_paused = true)]
async fn earned_per_call_repeats_go_on_in_an_outage_as_the_share_of_calls() -> Tested {
    let policy = Policy::builder().with_budget_earn(Earn::PerCall).with_budget_floor(0.0);
    let seen = load(policy, WAITING, 1, Duration::from_secs(20), |_, _| true).await?;
    let steady = &seen[5..20];
    let share = sum(steady, |it| it.repeats) / sum(steady, |it| it.first);
    assert!((share - 0.2).abs() < 0.002, "{share}");
    Ok(())
}
