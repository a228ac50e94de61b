use std::fmt;
use std::sync::Arc;

use abate_core::policy::Policy;
use abate_core::rng::{Seed, Streams};
use tower_layer::Layer;

use super::shared::Terms;
use super::{BudgetHandle, Retry};

/// Tries again what failed in passing; see the [module](crate::retry).
///
/// Clones of the layer, and everything it is laid over, share one budget.
#[derive(Clone)]
pub struct RetryLayer {
    terms: Arc<Terms>,
}

impl RetryLayer {
    /// Retries by `policy`, with a budget of its own that starts now.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let budget = Some(BudgetHandle::new(&policy));
        Self::of(Terms { policy, budget, streams: Streams::new(Seed::random()) })
    }

    /// Pays for retries from `budget`, which other layers may share.
    #[must_use]
    pub fn with_budget(self, budget: BudgetHandle) -> Self {
        self.changed(|terms| terms.budget = Some(budget))
    }

    /// Retries without a budget. In an outage this multiplies the load by the number of attempts;
    /// nothing but a fixed, small number of callers makes that safe.
    #[must_use]
    pub fn without_budget(self) -> Self {
        self.changed(|terms| terms.budget = None)
    }

    /// Draws the same jitter in every run: for tests.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.changed(|terms| terms.streams = Streams::new(Seed::new(seed)))
    }

    /// The budget, unless there is none.
    #[must_use]
    pub fn budget(&self) -> Option<BudgetHandle> {
        self.terms.budget.clone()
    }

    fn of(terms: Terms) -> Self {
        Self { terms: Arc::new(terms) }
    }

    fn changed(self, change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms {
            policy: self.terms.policy.clone(),
            budget: self.terms.budget.clone(),
            streams: Streams::new(self.terms.streams.seed()),
        };
        change(&mut terms);
        Self::of(terms)
    }
}

impl<S: Clone> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(inner, Arc::clone(&self.terms))
    }
}

impl fmt::Debug for RetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("terms", &self.terms).finish()
    }
}
