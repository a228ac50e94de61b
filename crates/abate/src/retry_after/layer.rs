use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use abate_core::policy::Policy;
use abate_core::retry_after::HintSources;
use tower_layer::Layer;

use super::RetryAfter;
use crate::body::{Merge, Pass};

/// Publishes what a server says about coming back as a [`Pushback`](crate::Pushback); see the
/// [module](crate::retry_after).
pub struct RetryAfterLayer<M = Pass> {
    /// `None` for the headers that are always read, which is the usual case and free.
    sources: Option<Arc<HintSources>>,
    relay: PhantomData<fn() -> M>,
}

impl RetryAfterLayer {
    /// Reads `Retry-After` and `retry-after-ms`.
    #[must_use]
    pub const fn new() -> Self {
        Self { sources: None, relay: PhantomData }
    }

    /// Reads those and the other headers that `policy` says its dependency sends.
    #[must_use]
    pub fn from_policy(policy: impl Borrow<Policy>) -> Self {
        let hints = policy.borrow().hints();
        let usual = *hints == HintSources::new();
        Self { sources: (!usual).then(|| Arc::new(hints.clone())), relay: PhantomData }
    }

    pub(crate) fn merging(self) -> RetryAfterLayer<Merge> {
        RetryAfterLayer { sources: self.sources, relay: PhantomData }
    }
}

impl Default for RetryAfterLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S, M> Layer<S> for RetryAfterLayer<M> {
    type Service = RetryAfter<S, M>;

    fn layer(&self, inner: S) -> RetryAfter<S, M> {
        RetryAfter::new(inner, self.sources.clone())
    }
}

impl<M> Clone for RetryAfterLayer<M> {
    fn clone(&self) -> Self {
        Self { sources: self.sources.clone(), relay: PhantomData }
    }
}

impl<M> fmt::Debug for RetryAfterLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfterLayer").field("sources", &self.sources).finish()
    }
}
