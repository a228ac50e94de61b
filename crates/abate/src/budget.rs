//! A retry budget in the hands of whoever shares or watches it.

use std::borrow::Borrow;
use std::num::NonZeroUsize;

use abate_core::budget::Budget;
use abate_core::policy::Policy;

use crate::clock;

/// Which budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetId(NonZeroUsize);

/// A retry budget that layers can share; clones are the same budget.
///
/// # Examples
///
/// Two stacks on one dependency, one budget:
///
/// ```
/// use abate::{BudgetHandle, Policy, RetryLayer};
///
/// let policy = Policy::default();
/// let budget = BudgetHandle::new(&policy);
/// let web = RetryLayer::new(policy.clone()).with_budget(budget.clone());
/// let jobs = RetryLayer::new(policy).with_budget(budget.clone());
/// assert_eq!(budget.tokens(), 2.0);
/// # drop((web, jobs));
/// ```
#[derive(Debug, Clone)]
pub struct BudgetHandle(Budget);

impl BudgetHandle {
    /// A budget by the rules of `policy`, which starts now.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        Self(Budget::new(policy.borrow().budget(), clock::now()))
    }

    pub(crate) const fn of(budget: Budget) -> Self {
        Self(budget)
    }

    /// The tokens in stock: the retries that can be paid for.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.0.tokens(clock::now())
    }

    /// The retries that may be sent per second at the present rate of calls.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.0.pace(clock::now())
    }

    /// Tells budgets apart, as long as one of its handles is held.
    pub(crate) fn id(&self) -> BudgetId {
        BudgetId(self.0.address())
    }

    pub(crate) const fn core(&self) -> &Budget {
        &self.0
    }
}
