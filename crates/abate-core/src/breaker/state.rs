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
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        })
    }
}

/// A breaker went from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state it left.
    pub from: State,
    /// The state it is in now.
    pub to: State,
    /// How long it stays open, where it opened.
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
