//! What a client's calls came to, in figures.

use serde::Serialize;

use crate::load::{Call, Outcome};
use crate::tally::Plan;

/// Share of the calls in a window that must succeed for the client to count as recovered, in percent.
const RECOVERED_PERCENT: usize = 95;

/// Length of that window, in seconds: long enough for one lucky second not to count.
pub const WINDOW: u32 = 2;

/// Everything that `--json` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    /// In the order in which the clients were added.
    pub clients: Vec<Figures>,
}

/// One client's figures.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The client.
    pub name: &'static str,
    /// Calls made.
    pub calls: usize,
    /// Requests handed to the HTTP client.
    pub attempts: u32,
    /// Attempts per call.
    pub amplification: f64,
    /// Share of the calls that succeeded, 0 to 1.
    pub success: f64,
    /// Median latency of all calls, failures too, in milliseconds.
    pub p50_ms: f64,
    /// Their 99th percentile.
    pub p99_ms: f64,
    /// Attempts in the busiest second per call due in a second.
    pub worst_second: f64,
    /// Seconds from the end of the outage to the first window in which nearly all calls succeed.
    pub recovery_s: Option<u32>,
}

impl Figures {
    /// The figures of `outcome`.
    #[must_use]
    pub fn new(plan: &Plan, outcome: &Outcome) -> Self {
        let calls = &outcome.calls;
        let seconds = outcome.tally.attempts();
        let attempts = seconds.iter().sum();
        let worst = seconds.iter().copied().max().unwrap_or(0);
        let mut latencies: Vec<f64> =
            calls.iter().map(|call| call.latency.as_secs_f64() * 1e3).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        Self {
            name: outcome.name,
            calls: calls.len(),
            attempts,
            amplification: rounded(f64::from(attempts) / calls.len() as f64),
            success: rounded(successes(calls) as f64 / calls.len() as f64),
            p50_ms: rounded(percentile(&latencies, 50)),
            p99_ms: rounded(percentile(&latencies, 99)),
            worst_second: rounded(f64::from(worst) / f64::from(plan.rate)),
            recovery_s: recovery(plan, calls),
        }
    }
}

fn recovery(plan: &Plan, calls: &[Call]) -> Option<u32> {
    (0..=plan.recovery.saturating_sub(WINDOW)).find(|after| {
        let from = plan.release() + after;
        // Calls lie in the order of their start, `rate` of them in each second.
        let window = calls.get((from * plan.rate) as usize..((from + WINDOW) * plan.rate) as usize);
        window.is_some_and(|window| successes(window) * 100 >= window.len() * RECOVERED_PERCENT)
    })
}

fn successes(calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.success).count()
}

/// The nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Three decimals are more than a run on a real clock can promise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
