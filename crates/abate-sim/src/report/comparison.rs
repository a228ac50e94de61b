//! What a report is about.

use crate::record::Run;
use std::time::Duration;

/// Runs of one scenario under several policies, to be shown side by side.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// The name of the scenario.
    pub title: String,
    /// What happens in it, in a sentence or two.
    pub scenario: String,
    /// One run for each policy, in the order to show them in.
    pub runs: Vec<Run>,
    /// Where each policy recovers, if somebody looked.
    pub map: Option<Map>,
}

/// Which policy recovers from what.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// How busy the dependency is in each column: calls per second over what it can answer.
    pub loads: Vec<f64>,
    /// How long the trouble of each row lasts.
    pub outages: Vec<Duration>,
    /// One grid for each policy.
    pub policies: Vec<Grid>,
}

/// Which trouble one policy recovers from.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    /// Whose it is.
    pub name: String,
    /// How long it takes to recover: a row for each outage, with a cell for each load; none where it
    /// never does.
    pub recovery: Vec<Vec<Option<Duration>>>,
}
