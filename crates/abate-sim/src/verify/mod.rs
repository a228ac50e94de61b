//! What the simulator must come to: published models and measurements, run again with the shipped
//! decisions beside other people's.
//!
//! Each experiment has a file of its own, which says where its figures come from.

mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;
mod e09;
mod e10;
mod e11;
mod e12;
mod e14;
mod e15;
mod line;
mod parts;

pub use self::line::{Expected, Line, Verdict};
use crate::Crew;

/// One experiment.
#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    /// Its name: `E7`.
    pub id: &'static str,
    /// What it shows, in a few words.
    pub title: &'static str,
    /// How many runs it makes, for a progress bar.
    pub runs: u64,
    run: fn(&Crew<'_>) -> Vec<Line>,
}

impl Experiment {
    /// Every experiment, in order.
    pub const ALL: &[Self] = &[
        e01::EXPERIMENT,
        e02::EXPERIMENT,
        e03::EXPERIMENT,
        e04::EXPERIMENT,
        e05::EXPERIMENT,
        e06::EXPERIMENT,
        e07::EXPERIMENT,
        e08::EXPERIMENT,
        e09::EXPERIMENT,
        e10::EXPERIMENT,
        e11::EXPERIMENT,
        e12::EXPERIMENT,
        e14::EXPERIMENT,
        e15::EXPERIMENT,
    ];

    /// Makes its runs with `crew`, and says what they came to.
    #[must_use]
    pub fn run(&self, crew: &Crew<'_>) -> Vec<Line> {
        (self.run)(crew)
    }
}
