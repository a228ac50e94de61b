use abate_core::config::Declared;

use super::load::Load;
use super::schedule::Schedule;
use super::time::Held;
use super::warnings::{Warning, warnings};

/// All there is to say of a policy.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// Of the dependency; none for the defaults.
    pub(super) name: Option<&'a str>,
    pub(super) declared: &'a Declared,
    pub(super) schedule: Schedule,
    pub(super) held: Held,
    pub(super) load: Vec<Load>,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(name: Option<&'a str>, declared: &'a Declared, layers: u32) -> Self {
        let policy = declared.policy();
        let schedule = Schedule::new(policy.backoff(), policy.attempts() - 1);
        let held = Held::new(policy, &schedule);
        let load = Load::through(declared, layers);
        let warnings = warnings(declared, &schedule, &held, &load);
        Self { name, declared, schedule, held, load, warnings }
    }
}
