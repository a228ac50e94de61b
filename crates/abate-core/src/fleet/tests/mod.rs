mod client;
mod pool;
mod weather;

use std::time::{Duration, Instant};

use super::{ClientCore, Terms};
use crate::budget::{Budget, Costs, Denied, Earn, Grant, Rules};
use crate::classify::Transient;
use crate::ratio::Ratio;
use crate::rng::Seed;

const NOW: Duration = Duration::ZERO;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[expect(clippy::disallowed_methods, reason = "any moment to start from")]
fn moment() -> Instant {
    Instant::now()
}

fn terms(floor: f64) -> Terms {
    Terms::new(Ratio::from_percent(20).unwrap(), floor).unwrap()
}

fn process(floor: f64, seed: u64, now: Instant) -> ClientCore {
    let (earn, costs, ratio) = (Earn::PerSuccess, Costs::ONE, Ratio::ZERO);
    let rules = Rules { ratio, earn, costs, floor: 5.0, start: 5.0, burst: 1 };
    ClientCore::new(rules, terms(floor), Seed::new(seed), now)
}

/// So many calls that succeed.
fn succeed(budget: &Budget, calls: u32, now: Instant) {
    for _ in 0..calls {
        budget.count_call(now);
        budget.earn();
    }
}

fn ask(budget: &Budget, now: Instant) -> Result<Grant, Denied> {
    budget.grant(now, NOW, Duration::MAX, Transient::Server)
}
