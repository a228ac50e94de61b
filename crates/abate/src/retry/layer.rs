use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use abate_core::policy::Policy;
use abate_core::rng::{Seed, Streams};
use http::HeaderName;
use tower_layer::Layer;

use super::Retry;
use super::shared::Terms;
use crate::body::{Merge, Pass};
use crate::budget::BudgetHandle;

/// Tries again what failed in passing; see the [module](crate::retry).
///
/// The service below takes `http::Request<ReplayBody<B>>`, where callers send `http::Request<B>`. A
/// client that is generic over its body, as hyper-util's is, gets that from inference: write
/// `build_http()` without a type, not `Client<_, Full<Bytes>>` (the compiler would say that
/// `Retry<…>` has no method `ready`, or is no `Service<_>`).
///
/// Clones of the layer, and everything it is laid over, share one budget.
pub struct RetryLayer<M = Pass> {
    terms: Arc<Terms>,
    relay: PhantomData<fn() -> M>,
}

impl RetryLayer {
    /// Retries by `policy`, with a budget of its own that starts now.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        let policy = policy.borrow().clone();
        let budget = Some(BudgetHandle::new(&policy));
        Self::of(Terms::new(policy, budget, Seed::random()))
    }

    pub(crate) fn merging(self) -> RetryLayer<Merge> {
        RetryLayer { terms: self.terms, relay: PhantomData }
    }
}

impl<M> RetryLayer<M> {
    /// Pays for retries from `budget`, which other layers may share.
    #[must_use]
    pub fn with_budget(self, budget: BudgetHandle) -> Self {
        self.changed(|terms| terms.budget = Some(budget))
    }

    /// Retries without a budget. In an outage this multiplies the load by the number of attempts;
    /// nothing but a fixed, small number of callers makes that safe.
    #[must_use]
    pub fn without_budget(self) -> Self {
        self.changed(|terms| terms.budget = None)
    }

    /// Draws the same jitter in every run: for tests.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.changed(|terms| terms.streams = Streams::new(Seed::new(seed)))
    }

    /// Tells the server in the header `name` which attempt it sees, from 1. Whatever stands there
    /// already is replaced.
    #[must_use]
    pub fn with_attempt_header(self, name: HeaderName) -> Self {
        self.changed(|terms| terms.header = Some(name))
    }

    /// Lets layers below that run in another task (behind a [`Buffer`]) know what those in the same
    /// task do: the attempt, so that a retry among them stands down, and the deadline. It costs
    /// each request an insert into its extensions.
    ///
    /// [`Buffer`]: https://docs.rs/tower/latest/tower/buffer/
    #[must_use]
    pub fn through_spawned_layers(self) -> Self {
        self.changed(|terms| terms.spawned = true)
    }

    /// The budget, unless there is none.
    #[must_use]
    pub fn budget(&self) -> Option<BudgetHandle> {
        self.terms.budget.clone()
    }

    fn of(terms: Terms) -> Self {
        Self { terms: Arc::new(terms), relay: PhantomData }
    }

    fn changed(self, change: impl FnOnce(&mut Terms)) -> Self {
        Self::of(self.terms.changed(change))
    }
}

impl<S: Clone, M> Layer<S> for RetryLayer<M> {
    type Service = Retry<S, M>;

    fn layer(&self, inner: S) -> Retry<S, M> {
        Retry::new(inner, Arc::clone(&self.terms))
    }
}

impl<M> Clone for RetryLayer<M> {
    fn clone(&self) -> Self {
        Self { terms: Arc::clone(&self.terms), relay: PhantomData }
    }
}

impl<M> fmt::Debug for RetryLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("terms", &self.terms).finish()
    }
}
