use std::borrow::Borrow;

use abate_core::policy::Policy;
use tower_layer::Layer;

use crate::attempt_timeout::{AttemptTimeout, AttemptTimeoutLayer};
use crate::body::Merge;
use crate::budget::BudgetHandle;
use crate::circuit_breaker::{BreakerHandle, CircuitBreaker, CircuitBreakerLayer};
use crate::concurrency_limit::{
    ConcurrencyLimit, ConcurrencyLimitHandle, ConcurrencyLimitLayer, Hold,
};
use crate::deadline::{DeadlineLayer, Deadlined};
use crate::retry::{Retry, RetryLayer};
use crate::retry_after::{RetryAfter, RetryAfterLayer};
use crate::scope::Scope;

/// What [`Stack`] makes of a client `S`.
///
/// It answers with `http::Response<abate::ResponseBody<B>>` where `S` answers with
/// `http::Response<B>`.
pub type StackService<S> = Deadlined<
    Retry<
        CircuitBreaker<RetryAfter<ConcurrencyLimit<AttemptTimeout<S>, Merge>, Merge>, Merge>,
        Merge,
    >,
    Merge,
>;

/// All six layers, from one policy; see the [module](crate::stack).
///
/// Clones of it, and everything it is laid over, share one budget, one breaker and one limit: a
/// stack is for one dependency.
///
/// As with [`RetryLayer`], the client's body is `ReplayBody<B>` where callers send a `B`: leave it
/// to inference. A layer that is not wanted is switched off by the policy (one attempt; no
/// concurrency limit; a long timeout) or by its handle ([`BreakerHandle::disable`]).
#[derive(Debug, Clone)]
pub struct Stack {
    deadline: DeadlineLayer<Merge>,
    retry: RetryLayer<Merge>,
    breaker: CircuitBreakerLayer<Merge>,
    retry_after: RetryAfterLayer<Merge>,
    limit: ConcurrencyLimitLayer<Merge>,
    attempt_timeout: AttemptTimeoutLayer,
}

impl Stack {
    /// The layers by `policy`, with budget, breaker and limit of their own.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        let policy = policy.borrow();
        Self {
            deadline: DeadlineLayer::new(policy.total_timeout()).merging(),
            breaker: CircuitBreakerLayer::new(policy).merging(),
            retry_after: RetryAfterLayer::from_policy(policy).merging(),
            limit: ConcurrencyLimitLayer::from_policy(policy).merging(),
            attempt_timeout: AttemptTimeoutLayer::new(policy.attempt_timeout()),
            retry: RetryLayer::new(policy).merging(),
        }
    }

    /// Pays for retries from `budget`, which other stacks may share.
    #[must_use]
    pub fn with_budget(mut self, budget: BudgetHandle) -> Self {
        self.retry = self.retry.with_budget(budget);
        self
    }

    /// Lets the deadline and the attempt timeout cover response bodies as well: one that is not at
    /// its end in time ends with an error, is no longer retried, and counts against the dependency.
    #[must_use]
    pub const fn covering_body(mut self) -> Self {
        self.deadline = self.deadline.covering_body();
        self.attempt_timeout = self.attempt_timeout.covering_body();
        self
    }

    /// How long a call counts as in flight for the concurrency limit.
    #[must_use]
    pub fn with_hold(mut self, hold: Hold) -> Self {
        self.limit = self.limit.with_hold(hold);
        self
    }

    /// Keeps a breaker for each key of `scope`: for a client that calls many dependencies.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.breaker = self.breaker.with_scope(scope);
        self
    }

    /// Draws the same jitter in every run, of waits and of open times: for tests.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.retry = self.retry.with_seed(seed);
        self.breaker = self.breaker.with_seed(seed);
        self
    }

    /// Tells where the breaker stands.
    #[must_use]
    pub fn breaker(&self) -> BreakerHandle {
        self.breaker.handle()
    }

    /// Tells what the retry budget holds.
    #[must_use]
    pub fn budget(&self) -> Option<BudgetHandle> {
        self.retry.budget()
    }

    /// Tells how many calls are in flight.
    #[must_use]
    pub fn limit(&self) -> ConcurrencyLimitHandle {
        self.limit.handle()
    }
}

impl<S: Clone> Layer<S> for Stack {
    type Service = StackService<S>;

    fn layer(&self, client: S) -> StackService<S> {
        let attempt = self.attempt_timeout.layer(client);
        let attempt = self.retry_after.layer(self.limit.layer(attempt));
        self.deadline.layer(self.retry.layer(self.breaker.layer(attempt)))
    }
}
