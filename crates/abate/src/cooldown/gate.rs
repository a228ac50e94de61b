use std::sync::Arc;
use std::time::{Duration, Instant};

use abate_core::cooldown::Cooldown;
use abate_core::retry_after::HintSources;
use abate_core::rng::Streams;
use http::Request;

use crate::scope::{Keyed, Scope};

/// What a layer decides by, and what was asked for.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) scope: Scope,
    pub(super) hints: HintSources,
    /// The longest that a call is held.
    pub(super) hold: Duration,
    pub(super) streams: Streams,
    pub(super) shared: Arc<Cooldown>,
    pub(super) keyed: Keyed<Arc<Cooldown>>,
}

impl Gate {
    pub(super) fn cooldown<B>(&self, request: &Request<B>, now: Instant) -> Arc<Cooldown> {
        match self.scope.key(request) {
            None => Arc::clone(&self.shared),
            Some(key) => self.keyed.get(&key, now, || Arc::new(Cooldown::new(now))),
        }
    }
}
