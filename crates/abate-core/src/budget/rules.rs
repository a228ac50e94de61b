use std::time::Duration;

use crate::ratio::Ratio;

/// Time constant of the tokens: what is not spent within some ten seconds fades.
///
/// Long enough to bridge a blip, short enough that an outage does not spend the wealth of a long
/// health.
pub const TAU: Duration = Duration::from_secs(10);

/// Time constant of the measured call rate, which sets the pace.
///
/// One second: the pace follows a change of traffic before a second's retries could overrun it.
pub const RATE_TAU: Duration = Duration::from_secs(1);

/// The longest that a retry waits for its slot. Beyond it a caller would be held for the sake of
/// a retry that comes too late to help.
pub const LONGEST_SLOT_WAIT: Duration = Duration::from_secs(1);

/// The least time an attempt is given: a retry that would start later than this before its
/// deadline is not made.
pub const SHORTEST_ATTEMPT: Duration = Duration::from_millis(50);

/// What a budget earns, keeps and lets go at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Tokens earned by a success.
    pub ratio: Ratio,
    /// Tokens per second that come by themselves.
    pub floor: f64,
    /// Tokens at the start.
    pub start: f64,
    /// Retries that may be sent at once, ahead of the pace.
    pub burst: u32,
}

/// Why a retry was not granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Denied {
    /// No token: too little has succeeded of late.
    Empty,
    /// Others wait for their slots already, longer than is worth waiting.
    Pace,
    /// Its slot would come too late for the call's deadline.
    Deadline,
}
