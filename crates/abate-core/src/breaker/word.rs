//! The state word of a breaker: a phase in the three low bits, the generation above.

use super::state::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Closed = 0,
    /// Closed as well, to the outside.
    SlowStart = 1,
    Open = 2,
    HalfOpen = 3,
    ForcedOpen = 4,
    Disabled = 5,
    ObserveOnly = 6,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

impl Word {
    /// The word that has these bits.
    #[inline]
    pub(super) fn of(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(super) fn new(generation: u64, phase: Phase) -> Self {
        Self((generation << 3) | phase as u64)
    }

    #[inline]
    pub(super) fn generation(self) -> u64 {
        self.0 >> 3
    }

    #[inline]
    pub(super) fn phase(self) -> Phase {
        match self.0 & 7 {
            0 => Phase::Closed,
            1 => Phase::SlowStart,
            2 => Phase::Open,
            3 => Phase::HalfOpen,
            4 => Phase::ForcedOpen,
            5 => Phase::Disabled,
            _ => Phase::ObserveOnly,
        }
    }

    pub(super) fn state(self) -> State {
        match self.phase() {
            Phase::Closed | Phase::SlowStart => State::Closed,
            Phase::Open => State::Open,
            Phase::HalfOpen => State::HalfOpen,
            Phase::ForcedOpen => State::ForcedOpen,
            Phase::Disabled => State::Disabled,
            Phase::ObserveOnly => State::ObserveOnly,
        }
    }
}
