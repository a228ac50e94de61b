use std::fmt;

use abate_core::breaker::{Breaker, State};

/// A breaker as its observers see it; clones see the same one.
#[derive(Clone)]
pub struct BreakerHandle(Breaker);

impl BreakerHandle {
    pub(super) const fn new(breaker: Breaker) -> Self {
        Self(breaker)
    }

    /// Where it stands. Time alone moves nothing: a breaker whose open time is up is open until a
    /// call asks.
    #[must_use]
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// How many transitions it has made.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.0.generation()
    }
}

impl fmt::Debug for BreakerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerHandle")
            .field("state", &self.state())
            .field("transitions", &self.transitions())
            .finish()
    }
}
