//! The main figures of a run, and its counts as rates.

use crate::record::{Bin, Run};
use crate::recovery::{Recovery, closing_goodput, recovery};
use std::time::Duration;

/// What a run comes to, beside the totals that it has itself.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    /// Attempts per second, in the busiest second.
    pub(super) peak: f64,
    /// Answers per second of the dependency when nothing is wrong with it, where it has a limit.
    pub(super) capacity: Option<f64>,
    pub(super) recovery: Recovery,
    /// From the end of the last trouble to the end of the run.
    pub(super) watched: Duration,
    /// The share of calls that succeed at the end of the run.
    pub(super) closing: Option<f64>,
    pub(super) worst_p99: Option<Duration>,
    /// When the last call ended, if all of them did and none began so late.
    pub(super) done: Option<Duration>,
}

impl Figures {
    pub(super) fn of(run: &Run) -> Self {
        let bins = bins(run);
        let trouble_ends = run.faults.iter().map(|trouble| trouble.to).max().unwrap_or_default();
        let capacities = bins.iter().filter_map(|bin| bin.capacity);
        Self {
            peak: peak(run),
            capacity: capacities.reduce(f64::max).filter(|capacity| *capacity > 0.0),
            recovery: recovery(run),
            watched: Duration::try_from_secs_f64(length(run))
                .map_or(Duration::MAX, |end| end.saturating_sub(trouble_ends)),
            closing: closing_goodput(run),
            worst_p99: bins.iter().filter_map(|bin| bin.p99).max(),
            done: done(run),
        }
    }
}

/// The bins that can be drawn: none where they take no time.
pub(super) fn bins(run: &Run) -> &[Bin] {
    if run.step.is_zero() { &[] } else { &run.bins }
}

/// How long the run was, in seconds.
pub(super) fn length(run: &Run) -> f64 {
    run.step.as_secs_f64() * run.bins.len() as f64
}

/// A count of each bin, as so many per second.
pub(super) fn per_second(run: &Run, count: impl Fn(&Bin) -> u64) -> Vec<f64> {
    let step = run.step.as_secs_f64();
    bins(run).iter().map(|bin| count(bin) as f64 / step).collect()
}

/// All attempts of a bin.
pub(super) fn attempts(bin: &Bin) -> u64 {
    u64::from(bin.first) + u64::from(bin.retries)
}

fn done(run: &Run) -> Option<Duration> {
    let last = bins(run).iter().rposition(|bin| bin.succeeded > 0 || bin.failed > 0)?;
    let all_ended = run.succeeded.checked_add(run.failed) == Some(run.calls);
    let is_end = all_ended && bins(run)[last].calls == 0;
    is_end.then_some(run.step.checked_mul(u32::try_from(last).ok()?.checked_add(1)?)?)
}

fn peak(run: &Run) -> f64 {
    let bins = bins(run);
    if bins.is_empty() {
        return 0.0;
    }
    let step = run.step.as_secs_f64();
    let width = ((1.0 / step).round() as usize).clamp(1, bins.len());
    let mut sum: u64 = bins[..width].iter().map(attempts).sum();
    let mut most = sum;
    for (comes, goes) in bins[width..].iter().zip(bins) {
        sum = sum + attempts(comes) - attempts(goes);
        most = most.max(sum);
    }
    most as f64 / (width as f64 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_counted_over_a_second_whatever_the_step() {
        let bin = |first, retries| Bin { first, retries, ..Bin::default() };
        let mut run = Run { step: Duration::from_millis(250), ..Run::default() };
        run.bins = vec![bin(1, 0), bin(9, 1), bin(2, 0), bin(3, 0), bin(4, 0), bin(0, 0)];
        assert_eq!(Figures::of(&run).peak, 19.0);
        run.step = Duration::from_secs(2);
        assert_eq!(Figures::of(&run).peak, 5.0);
        run.step = Duration::ZERO;
        assert_eq!(Figures::of(&run).peak, 0.0);
    }
}
