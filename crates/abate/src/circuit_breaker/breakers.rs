use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use abate_core::breaker::{Admitted, Breaker, Mode, Refused, Rules};
use abate_core::rng::Seed;
use http::Request;

use crate::observe;
use crate::scope::{Keyed, Scope};

/// The breaker of all calls, or one for each key.
#[derive(Debug, Clone)]
pub(super) enum Breakers {
    One(Breaker),
    Each(Arc<Each>),
}

#[derive(Debug)]
pub(super) struct Each {
    scope: Scope,
    rules: Rules,
    seed: Seed,
    /// How many were made: each is jittered by a seed of its own, or all that open together would
    /// let their probes through together.
    made: AtomicU64,
    pub(super) keyed: Keyed<Breaker>,
    /// What breakers of new keys start in.
    mode: Mutex<Mode>,
}

impl Breakers {
    pub(super) fn new(scope: Scope, rules: Rules, seed: Seed, now: Instant) -> Self {
        if matches!(scope, Scope::Shared) {
            return Self::One(Breaker::new(rules, seed, now));
        }
        let (made, keyed, mode) = (AtomicU64::new(0), Keyed::new(now), Mutex::default());
        Self::Each(Arc::new(Each { scope, rules, seed, made, keyed, mode }))
    }

    #[inline]
    pub(super) fn admit<B>(&self, request: &Request<B>, now: Instant) -> Result<Admitted, Refused> {
        match self {
            Self::One(breaker) => breaker.admit(now),
            Self::Each(each) => {
                each.breaker(&each.scope.key(request).unwrap_or_default(), now).admit(now)
            }
        }
    }

    /// Every breaker that there is.
    pub(super) fn all(&self) -> Vec<Breaker> {
        match self {
            Self::One(breaker) => vec![breaker.clone()],
            Self::Each(each) => each.keyed.all().into_iter().map(|(_, breaker)| breaker).collect(),
        }
    }

    pub(super) fn set(&self, mode: Mode) {
        if let Self::Each(each) = self {
            *each.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
        }
        for breaker in self.all() {
            observe::transition(Some(breaker.set(mode)));
        }
    }

    pub(super) fn scope(&self) -> Scope {
        match self {
            Self::One(_) => Scope::Shared,
            Self::Each(each) => each.scope,
        }
    }
}

impl Each {
    fn breaker(&self, key: &str, now: Instant) -> Breaker {
        self.keyed.get(key, now, || {
            // Relaxed: a number, no breaker shares it.
            let seed = self.seed.part(self.made.fetch_add(1, Relaxed));
            let breaker = Breaker::new(self.rules, seed, now);
            let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
            if mode != Mode::Automatic {
                breaker.set(mode);
            }
            breaker
        })
    }
}
