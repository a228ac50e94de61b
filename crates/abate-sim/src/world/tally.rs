//! Counts for each stretch of time.

use std::time::Duration;

use crate::law::nanos;
use crate::record::{Attempts, Bin, Run};
use crate::trace::Ending;

#[derive(Debug)]
pub(super) struct Tally {
    step: u64,
    ends: u64,
    /// The stretch that is being counted.
    pub(super) bin: Bin,
    /// The calls that hold a place under a concurrency limit.
    pub(super) in_use: u32,
    pub(super) bins: Vec<Bin>,
    pub(super) attempts: Vec<Attempts>,
    endings: [u64; Ending::ALL.len()],
    calls: u64,
    sent: u64,
    keeps_times: bool,
    /// Of calls that ended well in this stretch, in nanoseconds.
    times: Vec<u64>,
    all_times: Vec<u64>,
}

impl Tally {
    pub(super) fn new(step: Duration, keeps_times: bool) -> Self {
        let step = nanos(step).max(1);
        Self {
            step,
            ends: step,
            bin: Bin::default(),
            in_use: 0,
            bins: Vec::new(),
            attempts: Vec::new(),
            endings: [0; Ending::ALL.len()],
            calls: 0,
            sent: 0,
            keeps_times,
            times: Vec::new(),
            all_times: Vec::new(),
        }
    }

    /// Whether `now` is in a stretch after the present one.
    #[inline]
    pub(super) const fn is_over(&self, now: u64) -> bool {
        now >= self.ends
    }

    /// Ends the present stretch.
    pub(super) fn next(&mut self, breakers_open: u32, capacity: Option<f64>) {
        let mut bin = std::mem::take(&mut self.bin);
        bin.breakers_open = breakers_open;
        bin.capacity = capacity;
        self.times.sort_unstable();
        bin.p50 = percentile(&self.times, 0.5);
        bin.p99 = percentile(&self.times, 0.99);
        self.all_times.append(&mut self.times);
        self.bins.push(bin);
        self.ends += self.step;
    }

    /// A place under a limit was taken.
    #[inline]
    pub(super) fn note_use(&mut self) {
        self.in_use += 1;
        self.bin.in_use = self.bin.in_use.max(self.in_use);
    }

    #[inline]
    pub(super) fn began(&mut self) {
        self.calls += 1;
        self.bin.calls += 1;
    }

    #[inline]
    pub(super) fn sent(&mut self, attempt: u32) {
        self.sent += 1;
        if attempt == 1 {
            self.bin.first += 1;
        } else {
            self.bin.retries += 1;
        }
        self.of_number(attempt).sent += 1;
    }

    #[inline]
    pub(super) fn ended(&mut self, ending: Ending, attempt: u32, took: u64) {
        self.endings[ending.index()] += 1;
        if ending == Ending::Success {
            self.bin.succeeded += 1;
            self.of_number(attempt).succeeded += 1;
            if self.keeps_times {
                self.times.push(took);
            }
        } else {
            self.bin.failed += 1;
        }
    }

    fn of_number(&mut self, attempt: u32) -> &mut Attempts {
        let place = attempt.saturating_sub(1) as usize;
        if self.attempts.len() <= place {
            self.attempts.resize(place + 1, Attempts::default());
        }
        &mut self.attempts[place]
    }

    /// What there is to tell of a run.
    pub(super) fn into_run(mut self) -> Run {
        self.all_times.append(&mut self.times);
        self.all_times.sort_unstable();
        let succeeded = self.endings[Ending::Success.index()];
        let failed = self.endings.iter().sum::<u64>() - succeeded;
        let mut endings: Vec<_> = Ending::ALL
            .iter()
            .zip(self.endings)
            .filter(|(ending, count)| **ending != Ending::Success && *count > 0)
            .map(|(ending, count)| (ending.as_str(), count))
            .collect();
        endings.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Run {
            step: Duration::from_nanos(self.step),
            bins: self.bins,
            attempts: self.attempts,
            times_to_success: self.all_times.into_iter().map(Duration::from_nanos).collect(),
            calls: self.calls,
            succeeded,
            failed,
            sent: self.sent,
            endings,
            ..Run::default()
        }
    }
}

fn percentile(sorted: &[u64], share: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * share).round() as usize).map(|time| Duration::from_nanos(*time))
}
