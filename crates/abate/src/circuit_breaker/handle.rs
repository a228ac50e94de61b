use std::fmt;

use abate_core::breaker::{Breaker, Mode, State};

use super::breakers::Breakers;

/// A breaker in the hands of an operator; clones are the same one.
///
/// Of a breaker that is [keyed](super::CircuitBreakerLayer::with_scope) this is all of them
/// together; [`BreakerHandle::key`] is a single one.
#[derive(Clone)]
pub struct BreakerHandle(Breakers);

impl BreakerHandle {
    pub(super) const fn new(breakers: Breakers) -> Self {
        Self(breakers)
    }

    /// Where it stands; of several, the state that lets least pass. Time alone moves nothing: a
    /// breaker whose open time is up is open until a call asks.
    #[must_use]
    pub fn state(&self) -> State {
        let states = self.0.all().into_iter().map(|breaker| breaker.state());
        states.max_by_key(|state| severity(*state)).unwrap_or(State::Closed)
    }

    /// How many transitions it has made; of several, their sum.
    #[must_use]
    pub fn transitions(&self) -> u64 {
        self.0.all().iter().map(Breaker::generation).sum()
    }

    /// The breaker of one key, if it was called and is not forgotten.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<Self> {
        match &self.0 {
            Breakers::One(_) => None,
            Breakers::Each(each) => each.keyed.find(key).map(|it| Self(Breakers::One(it))),
        }
    }

    /// The keys that are kept; none where all calls share one breaker.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        match &self.0 {
            Breakers::One(_) => Vec::new(),
            Breakers::Each(each) => {
                each.keyed.all().into_iter().map(|(key, _)| key.as_ref().to_owned()).collect()
            }
        }
    }

    /// Refuses every call from now on.
    pub fn force_open(&self) {
        self.0.set(Mode::ForcedOpen);
    }

    /// Lets every call pass from now on, and records nothing.
    pub fn disable(&self) {
        self.0.set(Mode::Disabled);
    }

    /// Lets every call pass from now on, and tells when it would have opened.
    pub fn observe_only(&self) {
        self.0.set(Mode::ObserveOnly);
    }

    /// Starts afresh: closed, knowing nothing, and deciding by itself.
    pub fn reset(&self) {
        self.0.set(Mode::Automatic);
    }
}

/// How little passes.
const fn severity(state: State) -> u8 {
    match state {
        State::ForcedOpen => 5,
        State::Open => 4,
        State::HalfOpen => 3,
        State::Closed => 2,
        State::ObserveOnly => 1,
        _ => 0,
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
