use std::collections::BTreeSet;

use crate::policy::Policy;

/// A policy as a file declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    pub(super) policy: Policy,
    pub(super) budget: bool,
    pub(super) breaker: bool,
    pub(super) written: BTreeSet<String>,
}

impl Declared {
    /// The rules and limits.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether retries need a budget; not with `budget = false`.
    #[must_use]
    pub const fn has_budget(&self) -> bool {
        self.budget
    }

    /// Whether a breaker stands before the dependency; not with `breaker = false`.
    #[must_use]
    pub const fn has_breaker(&self) -> bool {
        self.breaker
    }

    /// Whether the file says so itself: `key` is a path such as `attempts` or `budget.ratio`. Else
    /// the value is the default.
    #[must_use]
    pub fn is_written(&self, key: &str) -> bool {
        self.written.contains(key)
    }
}

impl Default for Declared {
    fn default() -> Self {
        Self { policy: Policy::default(), budget: true, breaker: true, written: BTreeSet::new() }
    }
}
