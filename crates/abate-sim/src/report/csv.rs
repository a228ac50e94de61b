//! A run as a table for spreadsheets and notebooks.

use super::figures::bins;
use crate::record::{Bin, Run};
use std::fmt::Display;

/// The bins of a run as CSV: a header, then a row for each bin. Counts are of that bin, times in
/// seconds; what is not known is empty.
#[must_use]
pub fn csv(run: &Run) -> String {
    let header = COLUMNS.map(|(name, _)| name).join(",");
    let mut lines = vec![format!("time_s,{header}")];
    for (at, bin) in bins(run).iter().enumerate() {
        let cells = COLUMNS.map(|(_, cell)| cell(bin)).join(",");
        lines.push(format!("{:.3},{cells}", at as f64 * run.step.as_secs_f64()));
    }
    lines.join("\n") + "\n"
}

type Column = (&'static str, fn(&Bin) -> String);

const COLUMNS: [Column; 17] = [
    ("calls", |bin| bin.calls.to_string()),
    ("first_attempts", |bin| bin.first.to_string()),
    ("retries", |bin| bin.retries.to_string()),
    ("succeeded", |bin| bin.succeeded.to_string()),
    ("failed", |bin| bin.failed.to_string()),
    ("refused_by_breaker", |bin| bin.refused_by_breaker.to_string()),
    ("refused_by_limit", |bin| bin.refused_by_limit.to_string()),
    ("denied_by_budget", |bin| bin.denied_by_budget.to_string()),
    ("wasted", |bin| bin.wasted.to_string()),
    ("errors", |bin| bin.errors.to_string()),
    ("longest_queue", |bin| bin.queue.to_string()),
    ("most_busy", |bin| bin.busy.to_string()),
    ("most_in_use", |bin| bin.in_use.to_string()),
    ("breakers_open", |bin| bin.breakers_open.to_string()),
    ("capacity_per_s", |bin| known(bin.capacity)),
    ("p50_s", |bin| known(bin.p50.map(|time| time.as_secs_f64()))),
    ("p99_s", |bin| known(bin.p99.map(|time| time.as_secs_f64()))),
];

fn known(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
