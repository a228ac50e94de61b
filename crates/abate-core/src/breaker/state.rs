use std::fmt;
use std::time::{Duration, Instant};

/// Where a breaker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Calls pass.
    Closed,
    /// Calls are refused.
    Open,
    /// A few probes pass.
    HalfOpen,
    /// Calls are refused until a handle says otherwise.
    ForcedOpen,
    /// Calls pass and nothing is recorded, until a handle says otherwise.
    Disabled,
    /// Calls pass and are recorded; what would have opened is told and not done.
    ObserveOnly,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::ForcedOpen => "forced open",
            Self::Disabled => "disabled",
            Self::ObserveOnly => "observe only",
        })
    }
}

/// How a breaker is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// By what it sees.
    #[default]
    Automatic,
    /// Refusing everything: the dependency is known to be down, or must be left alone.
    ForcedOpen,
    /// Letting everything pass, and recording nothing.
    Disabled,
    /// Letting everything pass, and telling when it would have opened.
    ObserveOnly,
}

/// A breaker went from one state to another; from [`State::ObserveOnly`] to itself where it would
/// have opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state it left.
    pub from: State,
    /// The state it is in now.
    pub to: State,
    /// How long it stays open, where it opened or would have.
    pub open_for: Option<Duration>,
}

/// A call that was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// When calls may pass again; `None` in half-open and slow start, where that depends on the
    /// answers under way.
    pub retry_at: Option<Instant>,
    /// What the question itself changed, if anything.
    pub transition: Option<Transition>,
}
