//! What a run goes through, and what is counted meanwhile.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// What every client goes through; whole seconds, so that each belongs to one phase.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Calls started in each second, evenly spaced.
    pub rate: u32,
    /// Seconds before the outage.
    pub health: u32,
    /// Seconds in which the origin finishes nothing.
    pub outage: u32,
    /// Seconds after it.
    pub recovery: u32,
    /// The origin's workers.
    pub workers: usize,
    /// What a worker takes for a request.
    pub service_time: Duration,
}

impl Plan {
    /// The second in which the outage ends.
    #[must_use]
    pub fn release(&self) -> u32 {
        self.health + self.outage
    }

    /// The second in which the last calls have been started.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.release() + self.recovery
    }
}

/// What can be counted while the calls are under way.
#[derive(Debug)]
pub struct Tally {
    start: Instant,
    attempts: Box<[AtomicU32]>,
    successes: Box<[AtomicU32]>,
    unopened: OnceLock<String>,
}

impl Tally {
    /// Nothing counted yet, in a run that starts at `start`.
    #[must_use]
    pub fn new(start: Instant, plan: &Plan) -> Self {
        // Calls in flight at the end go on for a while; whatever comes later still falls into the last second.
        let seconds = || (0..plan.end() + 10).map(|_| AtomicU32::new(0)).collect();
        Self { start, attempts: seconds(), successes: seconds(), unopened: OnceLock::new() }
    }

    /// Attempts handed to the HTTP client, by the second of their start.
    #[must_use]
    pub fn attempts(&self) -> Vec<u32> {
        read(&self.attempts)
    }

    /// Successful calls, by the second of their end.
    #[must_use]
    pub fn goodput(&self) -> Vec<u32> {
        read(&self.successes)
    }

    /// The first connection that this machine, not the origin, failed to open: a run that has one shows nothing.
    #[must_use]
    pub fn unopened(&self) -> Option<&str> {
        self.unopened.get().map(String::as_str)
    }

    /// Counts an attempt that starts now.
    pub fn attempt(&self) {
        self.add(&self.attempts);
    }

    /// Counts a successful call that ends now.
    pub fn success(&self) {
        self.add(&self.successes);
    }

    /// Notes why a connection could not be opened; the first reason stays.
    pub fn note_unopened(&self, reason: String) {
        self.unopened.get_or_init(|| reason);
    }

    fn add(&self, counts: &[AtomicU32]) {
        let second = usize::try_from(self.start.elapsed().as_secs()).unwrap_or(usize::MAX);
        if let Some(count) = counts.get(second).or(counts.last()) {
            // Relaxed: counts order nothing; the final ones are read after the calls have been joined.
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn read(counts: &[AtomicU32]) -> Vec<u32> {
    // Relaxed: see `Tally::add`.
    counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}
