use std::fmt;
use std::sync::{Arc, Mutex, Once, PoisonError};

use abate_core::policy::Policy;
use abate_core::rng::{Seed, Streams};
use abate_core::session::Bounds;
use http::HeaderName;

use crate::budget::BudgetHandle;
use crate::observe;

/// What a layer decides by.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) policy: Policy,
    pub(super) budget: Option<BudgetHandle>,
    pub(super) streams: Streams,
    /// The header that tells the server which attempt it sees.
    pub(super) header: Option<HeaderName>,
    /// Whether layers below run in another task.
    pub(super) spawned: bool,
    stood_down: Once,
}

impl Terms {
    pub(super) const fn new(policy: Policy, budget: Option<BudgetHandle>, seed: Seed) -> Self {
        Self {
            policy,
            budget,
            streams: Streams::new(seed),
            header: None,
            spawned: false,
            stood_down: Once::new(),
        }
    }

    /// The same terms for another layer, changed.
    pub(super) fn changed(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut terms = Self::new(self.policy.clone(), self.budget.clone(), self.streams.seed());
        terms.header.clone_from(&self.header);
        terms.spawned = self.spawned;
        change(&mut terms);
        terms
    }

    /// Whether first attempts are marked as well.
    pub(super) const fn marks(&self) -> bool {
        self.spawned || self.header.is_some()
    }

    /// Says, the first time, that a retry above does the retrying.
    pub(super) fn stand_down(&self) {
        self.stood_down.call_once(observe::stood_down);
    }

    /// What bounds a call. One that a retry above repeats already is paid for there.
    pub(super) fn bounds(&self, nested: bool) -> Bounds<'_> {
        let budget = self.budget.as_ref().filter(|_| !nested).map(BudgetHandle::core);
        Bounds { policy: &self.policy, budget, streams: &self.streams }
    }
}

/// What all calls through one service share: the terms, and a template of the service below from
/// which a repeat makes its own. So a call that needs no repeat clones no service.
pub(super) struct Shared<S> {
    pub(super) terms: Arc<Terms>,
    template: Mutex<S>,
}

impl<S: Clone> Shared<S> {
    pub(super) fn new(terms: Arc<Terms>, template: S) -> Self {
        Self { terms, template: Mutex::new(template) }
    }

    /// A service that has reserved nothing, to be readied before it is called.
    pub(super) fn fresh(&self) -> S {
        // A service whose `clone` panicked is no worse for it.
        self.template.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<S> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("terms", &self.terms).finish_non_exhaustive()
    }
}
