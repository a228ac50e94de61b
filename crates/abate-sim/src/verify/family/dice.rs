use std::time::Duration;

use abate_core::rng::Stream;

/// Numbers by chance.
#[derive(Debug)]
pub(super) struct Dice {
    stream: Stream,
}

impl Dice {
    pub(super) const fn new(stream: Stream) -> Self {
        Self { stream }
    }

    /// A whole number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.stream.below(end)
    }

    /// Whether something that happens `of_100` times of 100 does.
    pub(super) fn happens(&mut self, of_100: u64) -> bool {
        self.below(100) < of_100
    }

    /// Evenly between two numbers.
    pub(super) fn between(&mut self, least: f64, most: f64) -> f64 {
        const STEPS: u64 = 1 << 32;
        least + (most - least) * (self.below(STEPS) as f64 / STEPS as f64)
    }

    /// Between two numbers, as often in each order of magnitude.
    pub(super) fn over(&mut self, least: f64, most: f64) -> f64 {
        libm::exp(self.between(libm::log(least), libm::log(most)))
    }

    /// The same of seconds, in whole milliseconds.
    pub(super) fn seconds_over(&mut self, least: f64, most: f64) -> Duration {
        Duration::from_millis((self.over(least, most) * 1e3) as u64)
    }
}
