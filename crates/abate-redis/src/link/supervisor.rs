//! Decides, without a clock or a socket: when a connection is given up, when to dial, and what to tell people.

use std::time::{Duration, Instant};

use abate_core::rng::Stream;

use super::error::{Cause, Refusal};

/// One late answer may be a pause of the server; the second is a connection that leads nowhere.
const TIMEOUTS_IN_A_ROW: u32 = 2;

/// A restart with a snapshot of some 100 MB; a server that loads for longer may have a successor by now.
const PATIENT_WITH_LOADING: Duration = Duration::from_secs(5);

/// The first wait before dialling again is drawn from 0 to this: a fleet of 1,000 comes back spread over it.
/// Later ones are drawn from 0 to as long as the trouble has lasted: a connection is back after that time again at the latest.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// No wait is longer: 10,000 processes make 670 attempts a second towards a server that stays away.
/// A connection that stood for so long ends the trouble, even if nothing was asked of it.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What the driver saw.
#[derive(Debug)]
pub(super) enum Seen {
    /// A new connection stands, in place of the old one if there was any.
    Connected,
    /// An attempt to connect failed.
    NotConnected(Cause),
    /// The connection ended while nothing was asked of it, as servers and balancers do to idle ones.
    DroppedIdle,
    /// The connection ended under a request.
    Dropped(Cause),
    /// A request had no answer in time.
    TimedOut,
    /// Every call was answered.
    Answered,
    /// The server said no.
    Refused(Refusal),
}

/// What the driver does about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// The connection is of no more use: close it.
    pub cut: bool,
    /// Tell people.
    pub change: Option<Change>,
}

/// A change of state, told once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Down(Cause),
    Up,
}

#[derive(Debug)]
pub(super) struct Supervisor {
    random: Stream,
    down: Option<Cause>,
    /// When to dial; `None` while a connection stands, or is being made.
    dial_at: Option<Instant>,
    /// When the first dial since the last answer was called for.
    troubled_since: Option<Instant>,
    connected_at: Option<Instant>,
    timeouts: u32,
    loading_since: Option<Instant>,
}

impl Supervisor {
    /// One that dials at `now`.
    pub(super) const fn new(now: Instant, random: Stream) -> Self {
        Self {
            random,
            down: None,
            dial_at: Some(now),
            troubled_since: None,
            connected_at: None,
            timeouts: 0,
            loading_since: None,
        }
    }

    /// When to dial: at the latest then, whatever else happens.
    pub(super) const fn dial_at(&self) -> Option<Instant> {
        self.dial_at
    }

    /// The driver dials.
    pub(super) const fn dialling(&mut self) {
        self.dial_at = None;
    }

    /// Why there is no connection now.
    pub(super) fn cause(&self) -> Cause {
        self.down.clone().unwrap_or(Cause::Connecting)
    }

    pub(super) fn saw(&mut self, seen: Seen, now: Instant) -> Orders {
        match seen {
            Seen::Connected => {
                self.dial_at = None;
                self.connected_at = Some(now);
                self.timeouts = 0;
                Orders::default()
            }
            Seen::NotConnected(cause) => {
                self.dial_later(now);
                Orders { cut: false, change: self.falls(cause) }
            }
            Seen::DroppedIdle => {
                self.loses(now);
                Orders { cut: true, change: None }
            }
            Seen::Dropped(cause) => {
                self.loses(now);
                Orders { cut: true, change: self.falls(cause) }
            }
            Seen::TimedOut => self.timed_out(now),
            Seen::Answered => {
                let change = self.down.take().map(|_| Change::Up);
                self.dial_at = None;
                self.troubled_since = None;
                self.timeouts = 0;
                self.loading_since = None;
                Orders { cut: false, change }
            }
            Seen::Refused(refusal) => self.refused(refusal, now),
        }
    }

    fn timed_out(&mut self, now: Instant) -> Orders {
        self.timeouts += 1;
        if self.timeouts < TIMEOUTS_IN_A_ROW {
            return Orders::default();
        }
        self.timeouts = 0;
        self.loses(now);
        Orders { cut: true, change: self.falls(Cause::Timeout) }
    }

    /// The connection works, and stays: what refuses today may answer tomorrow. Where another server may be the
    /// right one by now, a new connection takes its place in a while.
    fn refused(&mut self, refusal: Refusal, now: Instant) -> Orders {
        self.timeouts = 0;
        let since = *self.loading_since.get_or_insert(now);
        if !refusal.is_loading() {
            self.loading_since = None;
        }
        let loads_for_long =
            refusal.is_loading() && now.duration_since(since) > PATIENT_WITH_LOADING;
        if (refusal.is_from_replica() || loads_for_long) && self.dial_at.is_none() {
            self.dial_later(now);
        }
        Orders { cut: false, change: self.falls(Cause::Refused(refusal)) }
    }

    fn falls(&mut self, cause: Cause) -> Option<Change> {
        let first = self.down.is_none();
        self.down = Some(cause.clone());
        first.then_some(Change::Down(cause))
    }

    fn loses(&mut self, now: Instant) {
        let stood = self.connected_at.take().map(|since| now.duration_since(since));
        if stood.is_some_and(|stood| stood >= LONGEST_WAIT) {
            self.troubled_since = None;
        }
        self.dial_later(now);
    }

    /// Full jitter.
    fn dial_later(&mut self, now: Instant) {
        let since = *self.troubled_since.get_or_insert(now);
        let most = now.duration_since(since).clamp(FIRST_WAIT, LONGEST_WAIT);
        self.dial_at = Some(now + self.random.up_to(most));
    }
}
