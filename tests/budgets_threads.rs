//! Nothing is lost or made when many threads earn and spend at once.

use std::sync::Barrier;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use abate::decisions::budget::{Budget, Costs, Denied, Earn, Rules};
use abate::decisions::classify::Transient;
use abate::{Policy, Ratio, RetryBudgetLayer};
use abate_tests::plan::Answer;
use abate_tests::probe::Probe;
use abate_tests::rig::get;
use tokio::runtime::Builder;
use tokio_test::task;
use tower::{Layer, ServiceExt};

use super::{Tested, attempt};

const THREADS: usize = 64;
const STEPS: usize = 30_000;

/// What one thread does to a budget whose clock stands still.
fn earn_and_spend(budget: &Budget, now: Instant, thread: usize) -> (f64, u32) {
    let (mut spent, mut granted) = (0.0, 0);
    for step in 0..STEPS {
        budget.count_call(now);
        budget.earn();
        let (why, cost) = match (step + thread) % 3 {
            0 => (Transient::Ambiguous, 2.5),
            1 => (Transient::Asked, 0.5),
            _ => (Transient::Server, 1.0),
        };
        match budget.grant(now, Duration::ZERO, Duration::MAX, why) {
            Ok(grant) if (step * 7 + thread).is_multiple_of(5) => drop(grant),
            Ok(mut grant) if (step + thread).is_multiple_of(2) => {
                assert!(grant.slot(now, Duration::MAX).is_ok());
                if step % 4 == 0 {
                    drop(grant);
                } else {
                    grant.sent();
                    (spent, granted) = (spent + cost, granted + 1);
                }
            }
            Ok(grant) => {
                grant.sent();
                (spent, granted) = (spent + cost, granted + 1);
            }
            Err(denied) => assert_eq!(denied, Denied::Empty),
        }
    }
    (spent, granted)
}

// BU-04
#[test]
fn of_what_sixty_four_threads_earn_and_spend_nothing_is_lost_or_made() -> Tested {
    let now = Instant::now();
    let costs = Costs::ONE.with(Transient::Ambiguous, 2.5).with(Transient::Asked, 0.5);
    let (earn, ratio, start) = (Earn::PerSuccess, Ratio::new(0.25)?, 1_000.0);
    let rules = Rules { ratio, earn, costs, floor: 0.0, start, burst: u32::MAX };
    let budget = Budget::new(rules, now);
    let barrier = Barrier::new(THREADS);
    let spent: Vec<_> = thread::scope(|scope| {
        let worker = |thread| {
            let (budget, barrier) = (&budget, &barrier);
            scope.spawn(move || {
                barrier.wait();
                earn_and_spend(budget, now, thread)
            })
        };
        let workers: Vec<_> = (0..THREADS).map(worker).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let supply = 1_000.0 + 0.25 * (THREADS * STEPS) as f64;
    let total: f64 = spent.iter().map(|(spent, _)| spent).sum();
    println!("{total} spent by {} retries", spent.iter().map(|(_, n)| n).sum::<u32>());
    assert!(total <= supply);
    assert_eq!(budget.tokens(now), supply - total);
    assert!(total > supply / 2.0, "{total} of {supply}: most of it was wanted");
    Ok(())
}

// BU-04
#[test]
fn sixty_four_threads_that_share_a_layer_spend_what_they_earn_and_no_more() -> Tested {
    let policy = Policy::builder().with_attempts(1_002).with_budget_floor(0.0).build()?;
    let layer = RetryBudgetLayer::new(policy);
    let before = layer.budget().tokens();
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let barrier = Barrier::new(THREADS);
    let start = Instant::now();
    let sent: usize = thread::scope(|scope| {
        let worker = |_| {
            let (layer, barrier, runtime) = (&layer, &barrier, &runtime);
            scope.spawn(move || {
                let _context = runtime.enter();
                let up = layer.layer(Probe::answering([Answer::status(200)]));
                let failing = layer.layer(Probe::answering([Answer::status(503)]));
                barrier.wait();
                let mut sent = 0;
                for _ in 0..500 {
                    let mut success = task::spawn(up.clone().oneshot(get()));
                    assert!(success.poll().is_ready());
                    let mut repeat = task::spawn(failing.clone().oneshot(attempt(2)));
                    // One that is held is given up, and gives everything back.
                    sent += usize::from(matches!(repeat.poll(), Poll::Ready(Ok(_))));
                }
                sent
            })
        };
        let workers: Vec<_> = (0..THREADS).map(worker).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let (supply, left) = (before + 0.2 * (THREADS * 500) as f64, layer.budget().tokens());
    let kept = (-start.elapsed().as_secs_f64() / 10.0).exp();
    println!("{sent} sent of {supply}, {left} left, {kept:.3} does not fade");
    assert!(sent as f64 + left <= supply + 1e-3, "{sent} and {left} of {supply}");
    assert!(sent as f64 + left >= supply * kept - 1e-3, "{sent} and {left} of {supply}");
    assert!(sent > 1_000);
    Ok(())
}
