use std::borrow::Borrow;
use std::sync::Arc;

use abate_core::policy::Policy;
use abate_core::retry_after::HintSources;
use tower_layer::Layer;

use super::RetryAfter;

/// Publishes what a server says about coming back as a [`Pushback`](crate::Pushback); see the
/// [module](crate::retry_after).
#[derive(Debug, Clone, Default)]
pub struct RetryAfterLayer {
    /// `None` for the headers that are always read, which is the usual case and free.
    sources: Option<Arc<HintSources>>,
}

impl RetryAfterLayer {
    /// Reads `Retry-After` and `retry-after-ms`.
    #[must_use]
    pub const fn new() -> Self {
        Self { sources: None }
    }

    /// Reads those and the other headers that `policy` says its dependency sends.
    #[must_use]
    pub fn from_policy(policy: impl Borrow<Policy>) -> Self {
        let hints = policy.borrow().hints();
        let usual = *hints == HintSources::new();
        Self { sources: (!usual).then(|| Arc::new(hints.clone())) }
    }
}

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfter<S>;

    fn layer(&self, inner: S) -> RetryAfter<S> {
        RetryAfter::new(inner, self.sources.clone())
    }
}
