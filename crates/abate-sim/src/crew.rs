use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Those who make many runs: as many threads as the machine has to offer.
pub struct Crew<'a> {
    threads: usize,
    after_run: &'a (dyn Fn() + Sync),
}

impl<'a> Crew<'a> {
    /// One that calls `after_run` after each run, from any of its threads.
    #[must_use]
    pub fn new(after_run: &'a (dyn Fn() + Sync)) -> Self {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self { threads, after_run }
    }

    /// What `run` comes to for each number from 0 up to `runs`, in their order; seeds, say.
    pub fn each<T: Send>(&self, runs: u64, run: impl Fn(u64) -> T + Sync) -> Vec<T> {
        let next = AtomicU64::new(0);
        let results = Mutex::new(Vec::new());
        let work = || {
            loop {
                // Relaxed: a number, handed out once.
                let number = next.fetch_add(1, Relaxed);
                if number >= runs {
                    return;
                }
                let result = run(number);
                (self.after_run)();
                results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl fmt::Debug for Crew<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("threads", &self.threads).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_their_numbers() {
        let runs = AtomicU64::new(0);
        let after_run = || {
            runs.fetch_add(1, Relaxed);
        };
        let crew = Crew::new(&after_run);
        let results = crew.each(100, |number| number * number);
        assert_eq!(results, (0..100).map(|number| number * number).collect::<Vec<_>>());
        assert_eq!(runs.into_inner(), 100);
    }
}
