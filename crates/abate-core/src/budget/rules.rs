use std::time::Duration;

use crate::classify::Transient;
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

/// Tokens and slots are kept in billionths, so that `ratio × successes` is exact.
pub(crate) const ONE: u64 = 1_000_000_000;

/// What earns tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Earn {
    /// A call that succeeds. In a total outage nothing is earned and retries tend to none.
    #[default]
    PerSuccess,
    /// Every call, as in Google's SRE book: in an outage retries go on, as the share of calls that
    /// the ratio says.
    PerCall,
}

/// What a retry costs, in tokens, by why it is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    asked: f64,
    server: f64,
    unsent: f64,
    ambiguous: f64,
}

impl Costs {
    /// One token, whatever the reason.
    pub const ONE: Self = Self { asked: 1.0, server: 1.0, unsent: 1.0, ambiguous: 1.0 };

    /// The most that a retry may be said to cost.
    pub(crate) const MOST: f64 = 1e3;

    /// The same, but for retries because of `why`.
    #[must_use]
    pub const fn with(mut self, why: Transient, tokens: f64) -> Self {
        match why {
            Transient::Asked => self.asked = tokens,
            Transient::Server => self.server = tokens,
            Transient::Unsent => self.unsent = tokens,
            Transient::Ambiguous => self.ambiguous = tokens,
        }
        self
    }

    /// What a retry because of `why` costs.
    #[must_use]
    pub const fn of(&self, why: Transient) -> f64 {
        match why {
            Transient::Asked => self.asked,
            Transient::Server => self.server,
            Transient::Unsent => self.unsent,
            Transient::Ambiguous => self.ambiguous,
        }
    }
}

/// What a budget earns, keeps and lets go at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Tokens earned by a success, or by a call.
    pub ratio: Ratio,
    /// Which of the two.
    pub earn: Earn,
    /// What a retry costs.
    pub costs: Costs,
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
