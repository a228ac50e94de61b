use std::fmt;

use super::line::Line;
use crate::Crew;

/// One experiment.
#[derive(Clone, Copy)]
pub struct Experiment {
    /// Its name: `E7`.
    pub id: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// How many runs it makes, for a progress bar.
    pub runs: u64,
    pub(super) run: fn(&Crew<'_>) -> Vec<Line>,
}

impl Experiment {
    /// Makes its runs with `crew`, and says what they came to.
    #[must_use]
    pub fn run(&self, crew: &Crew<'_>) -> Vec<Line> {
        (self.run)(crew)
    }
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment").field("id", &self.id).finish_non_exhaustive()
    }
}
