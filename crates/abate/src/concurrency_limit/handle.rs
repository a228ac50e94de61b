use abate_core::policy::{Policy, PolicyError};
use abate_core::striped::Striped;

use crate::permits::Permits;

/// A limit in the hands of an operator; clones are the same one.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimitHandle {
    /// `None` limits nothing.
    permits: Option<Striped<Permits>>,
}

impl ConcurrencyLimitHandle {
    pub(super) fn new(max: Option<u32>) -> Self {
        Self { permits: max.map(|max| Striped::new(Permits::new(max))) }
    }

    /// The calls in flight now, bodies being read included.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.permits.as_ref().map_or(0, |permits| permits.in_use())
    }

    /// The most calls in flight; `None` where there is no limit.
    #[must_use]
    pub fn max(&self) -> Option<u32> {
        self.permits.as_ref().map(|permits| permits.max())
    }

    /// Changes the limit. Calls in flight go on; where there are more than `max` of them, none is
    /// let in until enough have ended. A layer that was made without a limit stays without one.
    ///
    /// # Errors
    ///
    /// When `max` is 0, which no call would ever pass, or larger than a semaphore counts.
    pub fn set_max(&self, max: usize) -> Result<(), PolicyError> {
        let policy = Policy::builder().with_concurrency(max).build()?;
        if let (Some(permits), Some(max)) = (&self.permits, policy.concurrency()) {
            permits.set_max(max);
        }
        Ok(())
    }

    pub(super) const fn permits(&self) -> Option<&Striped<Permits>> {
        self.permits.as_ref()
    }
}
