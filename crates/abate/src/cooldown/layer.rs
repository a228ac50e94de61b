use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;

use abate_core::cooldown::Cooldown;
use abate_core::policy::Policy;
use abate_core::retry_after::HintSources;
use abate_core::rng::{Seed, Streams};
use tower_layer::Layer;

use super::CooldownGate;
use super::gate::Gate;
use crate::clock;
use crate::scope::{Keyed, Scope};

/// Holds or refuses calls while a dependency wants to be left alone; see the
/// [module](crate::cooldown).
///
/// Clones of the layer, and everything it is laid over, share what was asked for.
#[derive(Debug, Clone)]
pub struct CooldownLayer {
    gate: Arc<Gate>,
}

impl CooldownLayer {
    /// Refuses calls meanwhile, for each authority. The hints are those that `policy` says its
    /// dependency sends.
    #[must_use]
    pub fn new(policy: impl Borrow<Policy>) -> Self {
        let hints = policy.borrow().hints().clone();
        Self::of(Scope::PerAuthority, hints, Duration::ZERO, Seed::random())
    }

    /// Holds a call that would have to wait for `longest` or less, and refuses others. A deadline
    /// that comes before its turn refuses it as well.
    #[must_use]
    pub fn holding(self, longest: Duration) -> Self {
        let Gate { scope, hints, streams, .. } = &*self.gate;
        Self::of(*scope, hints.clone(), longest, streams.seed())
    }

    /// Says which calls a hint is for.
    #[must_use]
    pub fn with_scope(self, scope: Scope) -> Self {
        let Gate { hints, hold, streams, .. } = &*self.gate;
        Self::of(scope, hints.clone(), *hold, streams.seed())
    }

    /// Spreads the calls in the same way in every run: for tests.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        let Gate { scope, hints, hold, .. } = &*self.gate;
        Self::of(*scope, hints.clone(), *hold, Seed::new(seed))
    }

    fn of(scope: Scope, hints: HintSources, hold: Duration, seed: Seed) -> Self {
        let now = clock::now();
        let shared = Arc::new(Cooldown::new(now));
        let (keyed, streams) = (Keyed::new(now), Streams::new(seed));
        Self { gate: Arc::new(Gate { scope, hints, hold, streams, shared, keyed }) }
    }
}

impl<S> Layer<S> for CooldownLayer {
    type Service = CooldownGate<S>;

    fn layer(&self, inner: S) -> CooldownGate<S> {
        CooldownGate::new(inner, Arc::clone(&self.gate))
    }
}
