use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use abate_core::policy::{Policy, PolicyError};
use tower_layer::Layer;

use super::service::Terms;
use super::{ConcurrencyLimit, ConcurrencyLimitHandle, Hold};
use crate::body::{Merge, Wrap};

/// Bounds the calls in flight; see the [module](crate::concurrency_limit).
///
/// Clones of the layer, and everything it is laid over, share one limit.
pub struct ConcurrencyLimitLayer<M = Wrap> {
    handle: ConcurrencyLimitHandle,
    terms: Terms,
    carry: PhantomData<fn() -> M>,
}

impl ConcurrencyLimitLayer {
    /// At most `max` calls in flight.
    ///
    /// # Errors
    ///
    /// When `max` is 0, which no call would ever pass, or larger than a semaphore counts.
    pub fn new(max: usize) -> Result<Self, PolicyError> {
        Ok(Self::from_policy(Policy::builder().with_concurrency(max).build()?))
    }

    /// The limit of a policy, which may be none.
    #[must_use]
    pub fn from_policy(policy: impl Borrow<Policy>) -> Self {
        let policy = policy.borrow();
        let handle = ConcurrencyLimitHandle::new(policy.concurrency());
        let terms = Terms { wait: policy.concurrency_wait(), hold: Hold::Body };
        Self { handle, terms, carry: PhantomData }
    }

    /// The longest that a call waits for its turn; zero refuses at once.
    #[must_use]
    pub const fn with_wait(mut self, wait: Duration) -> Self {
        self.terms.wait = wait;
        self
    }

    pub(crate) fn merging(self) -> ConcurrencyLimitLayer<Merge> {
        ConcurrencyLimitLayer { handle: self.handle, terms: self.terms, carry: PhantomData }
    }
}

impl<M> ConcurrencyLimitLayer<M> {
    /// How long a call counts as in flight.
    #[must_use]
    pub const fn with_hold(mut self, hold: Hold) -> Self {
        self.terms.hold = hold;
        self
    }

    /// Tells how many calls are in flight, and changes the limit.
    #[must_use]
    pub fn handle(&self) -> ConcurrencyLimitHandle {
        self.handle.clone()
    }
}

impl<S, M> Layer<S> for ConcurrencyLimitLayer<M> {
    type Service = ConcurrencyLimit<S, M>;

    fn layer(&self, inner: S) -> ConcurrencyLimit<S, M> {
        ConcurrencyLimit::new(inner, self.handle(), self.terms)
    }
}

impl<M> Clone for ConcurrencyLimitLayer<M> {
    fn clone(&self) -> Self {
        Self { handle: self.handle(), terms: self.terms, carry: PhantomData }
    }
}

impl<M> fmt::Debug for ConcurrencyLimitLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimitLayer")
            .field("handle", &self.handle)
            .field("terms", &self.terms)
            .finish()
    }
}
