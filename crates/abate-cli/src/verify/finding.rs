use abate_sim::verify::{Experiment, Line};

/// What an experiment came to.
pub(super) struct Finding {
    pub(super) experiment: &'static Experiment,
    pub(super) lines: Vec<Line>,
}
