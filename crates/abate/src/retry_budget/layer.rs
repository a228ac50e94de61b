use std::borrow::Borrow;
use std::sync::Arc;

use abate_core::policy::Policy;
use http::HeaderName;
use tower_layer::Layer;

use super::RetryBudget;
use super::terms::Terms;
use crate::budget::BudgetHandle;

/// Puts the repeats of any retry above on a budget; see the [module](crate::retry_budget).
///
/// Clones of the layer, and everything it is laid over, share one budget.
#[derive(Debug, Clone)]
pub struct RetryBudgetLayer {
    terms: Arc<Terms>,
}

impl RetryBudgetLayer {
    /// A budget of its own by the rules of `policy`, which starts now.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        let policy = policy.borrow();
        Self::of(Terms::new(BudgetHandle::new(policy), *policy.classifier(), None))
    }

    /// Pays for repeats from `budget`, which other layers may share.
    #[must_use]
    pub fn with_budget(self, budget: BudgetHandle) -> Self {
        let terms = &self.terms;
        Self::of(Terms::new(budget, terms.classifier, terms.header.clone()))
    }

    /// Takes a request for a repeat also if the header `name` holds a number above 1.
    #[must_use]
    pub fn with_attempt_header(self, name: HeaderName) -> Self {
        let terms = &self.terms;
        Self::of(Terms::new(terms.budget.clone(), terms.classifier, Some(name)))
    }

    /// The budget.
    #[must_use]
    pub fn budget(&self) -> BudgetHandle {
        self.terms.budget.clone()
    }

    fn of(terms: Terms) -> Self {
        Self { terms: Arc::new(terms) }
    }
}

impl<S> Layer<S> for RetryBudgetLayer {
    type Service = RetryBudget<S>;

    fn layer(&self, inner: S) -> RetryBudget<S> {
        RetryBudget::new(inner, Arc::clone(&self.terms))
    }
}
