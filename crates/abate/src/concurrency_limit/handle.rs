use std::sync::Arc;
use std::time::Duration;

use abate_core::policy::{Policy, PolicyError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit as its handles see it; clones share it.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimitHandle {
    /// Permits and their number; `None` limits nothing.
    limit: Option<(Arc<Semaphore>, u32)>,
    wait: Duration,
}

impl ConcurrencyLimitHandle {
    pub(super) fn new(max: usize) -> Result<Self, PolicyError> {
        Ok(Self::of(&Policy::builder().with_concurrency(max).build()?))
    }

    pub(super) fn of(policy: &Policy) -> Self {
        let limit = policy.concurrency().map(|max| (Arc::new(Semaphore::new(max as usize)), max));
        Self { limit, wait: policy.concurrency_wait() }
    }

    pub(super) const fn with_wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The calls in flight now, bodies being read included.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        let free = |permits: &Semaphore| u32::try_from(permits.available_permits());
        self.limit
            .as_ref()
            .map_or(0, |(permits, max)| max.saturating_sub(free(permits).unwrap_or(*max)))
    }

    /// The most calls in flight; `None` where there is no limit.
    #[must_use]
    pub fn max(&self) -> Option<u32> {
        self.limit.as_ref().map(|(_, max)| *max)
    }

    pub(super) const fn wait(&self) -> Duration {
        self.wait
    }

    /// A permit if one is free. The queue is fair: none is free while others wait.
    #[inline]
    pub(super) fn try_acquire(&self) -> Turn {
        match &self.limit {
            None => Turn::Now(None),
            Some((permits, _)) => match Arc::clone(permits).try_acquire_owned() {
                Ok(permit) => Turn::Now(Some(permit)),
                Err(_) => Turn::Later(Arc::clone(permits)),
            },
        }
    }
}

/// Whether a call goes at once.
#[derive(Debug)]
pub(super) enum Turn {
    /// With this permit, or without one where there is no limit.
    Now(Option<OwnedSemaphorePermit>),
    /// When one of these is free.
    Later(Arc<Semaphore>),
}
