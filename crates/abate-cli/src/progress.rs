//! How far long work has come, on a terminal; elsewhere nothing is shown.

use std::sync::Mutex;
use std::sync::PoisonError;

use indicatif::{ProgressBar, ProgressStyle};

/// The width of a bar, its numbers aside, in columns.
const TEMPLATE: &str = "{msg:24!} {bar:32} {percent:>3} %  {elapsed}, about {eta} left";

/// A bar on stderr, which is gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// One of `steps` steps.
    pub(crate) fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Says what is being done.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// A step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }

    /// Does `work` that writes to the terminal, with the bar out of its way.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// So many are.
    pub(crate) fn stand_at(&self, steps: u64) {
        self.bar.set_position(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of several at once, each from 0 to `whole`, as one.
#[derive(Debug)]
pub(crate) struct Together<'a> {
    progress: &'a Progress,
    parts: Mutex<Vec<u64>>,
}

impl<'a> Together<'a> {
    /// Of so many parts.
    pub(crate) fn new(progress: &'a Progress, parts: usize) -> Self {
        Self { progress, parts: Mutex::new(vec![0; parts]) }
    }

    /// Part number `part` has come to `steps`.
    pub(crate) fn stand_at(&self, part: usize, steps: u64) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts.get_mut(part) {
            *part = steps;
        }
        self.progress.stand_at(parts.iter().sum());
    }
}
