use super::experiment::Experiment;
use super::{e01, e02, e03, e04, e05, e06, e07, e08, e09, e10, e11, e12, e14, e15, family};

/// Every experiment, in order.
pub const EXPERIMENTS: &[Experiment] = &[
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
    family::EXPERIMENT,
];
