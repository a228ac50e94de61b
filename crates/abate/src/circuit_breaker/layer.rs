use std::fmt;
use std::marker::PhantomData;

use abate_core::breaker::Breaker;
use abate_core::classify::Statuses;
use abate_core::policy::Policy;
use abate_core::rng::Seed;
use tower_layer::Layer;

use super::{BreakerHandle, CircuitBreaker};
use crate::body::{Merge, Wrap};
use crate::clock;

/// Refuses calls while a dependency does not work; see the [module](crate::circuit_breaker).
///
/// Clones of the layer, and everything it is laid over, share one breaker.
pub struct CircuitBreakerLayer<M = Wrap> {
    breaker: Breaker,
    failures: Statuses,
    carry: PhantomData<fn() -> M>,
}

impl CircuitBreakerLayer {
    /// A closed breaker with the rules of `policy`, which starts now.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self {
            breaker: Breaker::new(policy.breaker(), Seed::random(), clock::now()),
            failures: *policy.retry_on(),
            carry: PhantomData,
        }
    }

    pub(crate) fn merging(self) -> CircuitBreakerLayer<Merge> {
        CircuitBreakerLayer { breaker: self.breaker, failures: self.failures, carry: PhantomData }
    }
}

impl<M> CircuitBreakerLayer<M> {
    /// Starts afresh with open times that are the same in every run: for tests.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.breaker = Breaker::new(*self.breaker.rules(), Seed::new(seed), clock::now());
        self
    }

    /// Tells where the breaker stands.
    #[must_use]
    pub fn handle(&self) -> BreakerHandle {
        BreakerHandle::new(self.breaker.clone())
    }
}

impl<S, M> Layer<S> for CircuitBreakerLayer<M> {
    type Service = CircuitBreaker<S, M>;

    fn layer(&self, inner: S) -> CircuitBreaker<S, M> {
        CircuitBreaker::new(inner, self.breaker.clone(), self.failures)
    }
}

impl<M> Clone for CircuitBreakerLayer<M> {
    fn clone(&self) -> Self {
        Self { breaker: self.breaker.clone(), failures: self.failures, carry: PhantomData }
    }
}

impl<M> fmt::Debug for CircuitBreakerLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
}
