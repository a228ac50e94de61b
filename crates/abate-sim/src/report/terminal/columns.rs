//! A run cut into as many columns as there are.

use super::super::figures::{attempts, bins};
use crate::record::{Bin, Run};

/// What one column shows; none where the run is over.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Column {
    /// First tries per second in the busiest of its bins.
    pub(super) first: f64,
    /// All attempts of that bin.
    pub(super) all: f64,
    /// Calls that succeed over calls that begin; none where none begins.
    pub(super) goodput: Option<f64>,
    pub(super) is_trouble: bool,
}

/// So many columns for `seconds` from the start.
pub(super) fn columns(run: &Run, seconds: f64, columns: usize) -> Vec<Option<Column>> {
    let bins = bins(run);
    let step = run.step.as_secs_f64();
    let width = seconds / columns as f64;
    let column = |at: usize| {
        let (from, to) = (at as f64 * width, (at + 1) as f64 * width);
        let first = ((from / step + 1e-9).floor() as usize).min(bins.len());
        let last = ((to / step - 1e-9).ceil() as usize).clamp(first, bins.len());
        let is_trouble = run
            .faults
            .iter()
            .any(|trouble| trouble.from.as_secs_f64() < to && trouble.to.as_secs_f64() > from);
        Column::of(&bins[first..last], step).map(|column| Column { is_trouble, ..column })
    };
    (0..columns).map(column).collect()
}

impl Column {
    fn of(bins: &[Bin], step: f64) -> Option<Self> {
        let busiest = bins.iter().max_by_key(|bin| attempts(bin))?;
        let begun: u64 = bins.iter().map(|bin| u64::from(bin.calls)).sum();
        let succeeded: u64 = bins.iter().map(|bin| u64::from(bin.succeeded)).sum();
        Some(Self {
            first: f64::from(busiest.first) / step,
            all: attempts(busiest) as f64 / step,
            goodput: (begun > 0).then(|| (succeeded as f64 / begun as f64).min(1.0)),
            is_trouble: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run(retries: &[u32]) -> Run {
        let bin = |retries: &u32| Bin {
            calls: 1,
            first: 1,
            succeeded: 1,
            retries: *retries,
            ..Bin::default()
        };
        let bins = retries.iter().map(bin).collect();
        Run { step: Duration::from_secs(1), bins, ..Run::default() }
    }

    #[test]
    fn a_column_shows_the_peak_of_its_bins() {
        let all = |columns: Vec<Option<Column>>| {
            columns.into_iter().map(|c| c.map(|c| c.all)).collect::<Vec<_>>()
        };
        let run = run(&[0, 4, 0, 0]);
        assert_eq!(all(columns(&run, 4.0, 2)), [Some(5.0), Some(1.0)]);
        assert_eq!(all(columns(&run, 4.0, 8))[..5], [1.0, 1.0, 5.0, 5.0, 1.0].map(Some));
        assert_eq!(
            all(columns(&run, 8.0, 2)),
            [Some(5.0), None],
            "a run may be shorter than another"
        );
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(columns(&run(&[]), 0.0, 2), [None, None]);
        assert_eq!(columns(&run(&[1]), 1.0, 0), []);
    }
}
