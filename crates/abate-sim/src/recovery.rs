//! Whether, and how soon, calls succeed again once the trouble is over.

use crate::record::{Bin, Run};
use std::time::Duration;

/// How long calls have to succeed before that counts as recovery.
pub const WINDOW: Duration = Duration::from_secs(10);

/// How many of 100 calls have to succeed in that window.
pub const ENOUGH: u64 = 95;

/// What became of a run after the last of its trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// There was no trouble to recover from.
    NoTrouble,
    /// The time from the end of the trouble to the start of the first good window; in steps of the
    /// run, so that it is up to one step late and never early.
    After(Duration),
    /// There was no good window up to the end of the run.
    Never,
    /// The run cannot tell: it ends less than one window after the trouble, or no call began after it.
    Unknown,
}

/// Finds the first window of [`WINDOW`] after the last trouble in which the calls that ended well are
/// at least [`ENOUGH`] of 100 calls that began.
///
/// Windows start at every bin that begins at or after the end of the trouble and lie within the run
/// as a whole. Both counts are of what happened in the window: a call that began before it and succeeds
/// in it counts among those that succeed. So calls that were held up and are let go at once can make a
/// window look better by as many as fit into one timeout. Windows in which no call began are passed
/// over.
#[must_use]
pub fn recovery(run: &Run) -> Recovery {
    let Some(trouble_ends) = run.faults.iter().map(|trouble| trouble.to).max() else {
        return Recovery::NoTrouble;
    };
    let Some(first) = bins_in(trouble_ends, run.step) else {
        return Recovery::Unknown;
    };
    let mut seen = false;
    for (at, window) in windows(run).enumerate().skip(first) {
        if window.good() {
            return start(run.step, at)
                .map_or(Recovery::Unknown, |start| Recovery::After(start - trouble_ends));
        }
        seen |= window.begun > 0;
    }
    if seen { Recovery::Never } else { Recovery::Unknown }
}

/// The share of calls that succeed in the last [`WINDOW`] of the run; none where no call began in it.
#[must_use]
pub fn closing_goodput(run: &Run) -> Option<f64> {
    let last = windows(run).last()?;
    (last.begun > 0).then(|| last.succeeded as f64 / last.begun as f64)
}

/// What was counted in one window.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    begun: u64,
    succeeded: u64,
}

impl Counts {
    fn and(self, bin: &Bin) -> Self {
        Self {
            begun: self.begun + u64::from(bin.calls),
            succeeded: self.succeeded + u64::from(bin.succeeded),
        }
    }

    fn good(self) -> bool {
        self.begun > 0 && self.succeeded * 100 >= self.begun * ENOUGH
    }
}

/// The counts of each whole window, one for each bin that it can start at.
fn windows(run: &Run) -> impl Iterator<Item = Counts> {
    let width = bins_in(WINDOW, run.step).unwrap_or(usize::MAX);
    let sums = run.bins.iter().scan(Counts::default(), |sum, bin| {
        *sum = sum.and(bin);
        Some(*sum)
    });
    let sums: Vec<_> = [Counts::default()].into_iter().chain(sums).collect();
    let windows = sums.len().saturating_sub(width);
    (0..windows).map(move |at| Counts {
        begun: sums[at + width].begun - sums[at].begun,
        succeeded: sums[at + width].succeeded - sums[at].succeeded,
    })
}

/// How many steps it takes to get to `time`; none where a step takes no time.
fn bins_in(time: Duration, step: Duration) -> Option<usize> {
    if step.is_zero() {
        return None;
    }
    usize::try_from(time.as_nanos().div_ceil(step.as_nanos())).ok()
}

fn start(step: Duration, bin: usize) -> Option<Duration> {
    step.checked_mul(u32::try_from(bin).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Trouble;

    /// Bins of a second with 100 calls each, of which so many succeed; trouble in the seconds named.
    fn run(succeeded: &[u32], troubles: &[(u64, u64)]) -> Run {
        let bin = |succeeded: &u32| Bin { calls: 100, succeeded: *succeeded, ..Bin::default() };
        let trouble = |(from, to): &(u64, u64)| Trouble {
            from: Duration::from_secs(*from),
            to: Duration::from_secs(*to),
            what: "down".to_owned(),
        };
        Run {
            step: Duration::from_secs(1),
            bins: succeeded.iter().map(bin).collect(),
            faults: troubles.iter().map(trouble).collect(),
            ..Run::default()
        }
    }

    fn seconds(bad: usize, good: usize) -> Vec<u32> {
        [vec![0; bad], vec![100; good]].concat()
    }

    #[test]
    fn a_run_without_trouble_has_nothing_to_recover_from() {
        assert_eq!(recovery(&run(&seconds(20, 0), &[])), Recovery::NoTrouble);
    }

    #[test]
    fn the_time_is_counted_from_the_end_of_the_last_trouble() {
        let succeeded = [seconds(0, 10), seconds(20, 30)].concat();
        let run = run(&succeeded, &[(22, 25), (10, 12)]);
        assert_eq!(recovery(&run), Recovery::After(Duration::from_secs(5)));
    }

    #[test]
    fn a_window_may_hold_a_bad_second_but_not_two() {
        let mut succeeded = seconds(0, 20);
        succeeded[3] = 50;
        assert_eq!(recovery(&run(&succeeded, &[(0, 1)])), Recovery::After(Duration::ZERO));
        succeeded[4] = 99;
        assert_eq!(
            recovery(&run(&succeeded, &[(0, 1)])),
            Recovery::After(Duration::from_secs(3)),
            "94.9 of 100 are not enough"
        );
    }

    #[test]
    fn nine_good_seconds_at_the_end_are_no_recovery() {
        assert_eq!(recovery(&run(&seconds(20, 9), &[(1, 2)])), Recovery::Never);
        let back = Recovery::After(Duration::from_secs(18));
        assert_eq!(recovery(&run(&seconds(20, 10), &[(1, 2)])), back);
    }

    #[test]
    fn a_run_that_ends_too_soon_cannot_tell() {
        assert_eq!(recovery(&run(&seconds(0, 20), &[(5, 11)])), Recovery::Unknown);
        assert_eq!(recovery(&run(&seconds(0, 20), &[(5, 500)])), Recovery::Unknown);
        assert_eq!(recovery(&run(&[], &[(0, 1)])), Recovery::Unknown);
    }

    #[test]
    fn a_run_whose_calls_all_began_before_cannot_tell() {
        let mut run = run(&seconds(0, 40), &[(0, 10)]);
        run.bins[1..].iter_mut().for_each(|bin| bin.calls = 0);
        assert_eq!(recovery(&run), Recovery::Unknown);
    }

    #[test]
    fn steps_need_not_be_seconds() {
        let mut run = run(&seconds(25, 200), &[(0, 1)]);
        run.step = Duration::from_millis(300);
        run.faults[0].to = Duration::from_millis(1_000);
        assert_eq!(recovery(&run), Recovery::After(Duration::from_millis(24 * 300 - 1_000)));
        run.step = Duration::from_secs(60);
        assert_eq!(recovery(&run), Recovery::After(Duration::from_secs(25 * 60 - 1)));
        run.step = Duration::ZERO;
        assert_eq!(recovery(&run), Recovery::Unknown);
    }

    #[test]
    fn the_closing_window_is_the_last_whole_one() {
        assert_eq!(closing_goodput(&run(&seconds(35, 5), &[])), Some(0.5));
        assert_eq!(closing_goodput(&run(&seconds(0, 9), &[])), None);
    }
}
