use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use abate_core::breaker::Rules;
use abate_core::policy::Policy;
use abate_core::rng::Seed;
use tower_layer::Layer;

use super::breakers::Breakers;
use super::{BreakerHandle, CircuitBreaker};
use crate::body::{Merge, Wrap};
use crate::clock;
use crate::scope::Scope;

/// Refuses calls while a dependency does not work; see the [module](crate::circuit_breaker).
///
/// Clones of the layer, and everything it is laid over, share one breaker, or one for each key.
pub struct CircuitBreakerLayer<M = Wrap> {
    breakers: Breakers,
    rules: Rules,
    carry: PhantomData<fn() -> M>,
}

impl CircuitBreakerLayer {
    /// A closed breaker with the rules of `policy`, which starts now.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        let policy = policy.borrow();
        let rules = policy.breaker();
        Self {
            breakers: Breakers::new(Scope::Shared, rules, Seed::random(), clock::now()),
            rules,
            carry: PhantomData,
        }
    }

    pub(crate) fn merging(self) -> CircuitBreakerLayer<Merge> {
        CircuitBreakerLayer { breakers: self.breakers, rules: self.rules, carry: PhantomData }
    }
}

impl<M> CircuitBreakerLayer<M> {
    /// Starts afresh with a breaker for each key of `scope`.
    ///
    /// At most [`MOST_KEYS`](crate::scope::MOST_KEYS) are kept, and those that were idle longest
    /// are forgotten.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.breakers = Breakers::new(scope, self.rules, Seed::random(), clock::now());
        self
    }

    /// Starts afresh with open times that are the same in every run: for tests.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        let scope = self.breakers.scope();
        self.breakers = Breakers::new(scope, self.rules, Seed::new(seed), clock::now());
        self
    }

    /// Tells where the breaker stands, and runs it by hand.
    #[must_use]
    pub fn handle(&self) -> BreakerHandle {
        BreakerHandle::new(self.breakers.clone())
    }
}

impl<S, M> Layer<S> for CircuitBreakerLayer<M> {
    type Service = CircuitBreaker<S, M>;

    fn layer(&self, inner: S) -> CircuitBreaker<S, M> {
        CircuitBreaker::new(inner, self.breakers.clone())
    }
}

impl<M> Clone for CircuitBreakerLayer<M> {
    fn clone(&self) -> Self {
        Self { breakers: self.breakers.clone(), rules: self.rules, carry: PhantomData }
    }
}

impl<M> fmt::Debug for CircuitBreakerLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreakerLayer")
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}
