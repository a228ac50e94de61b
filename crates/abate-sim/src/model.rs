//! What is simulated: clients, the way to a dependency, the dependency, and its trouble.

use std::fmt;
use std::time::Duration;

use abate_core::policy::Policy;
use abate_core::ratio::Ratio;

use crate::law::Law;

/// All that a run is made of, but for its seed.
#[derive(Debug, Clone)]
pub struct Model {
    /// When it ends, from the start.
    pub length: Duration,
    /// The stretch of time that is counted together.
    pub step: Duration,
    /// Who calls.
    pub groups: Vec<Group>,
    /// Who is called.
    pub servers: Vec<Server>,
    /// What goes wrong, and when.
    pub troubles: Vec<Trouble>,
    /// The number of the server whose attempts, queue and work are counted.
    pub watched: usize,
    /// Whether the times of calls are kept, for percentiles.
    pub keeps_times: bool,
}

/// Clients of one kind.
#[derive(Debug, Clone)]
pub struct Group {
    /// How many there are.
    pub clients: u32,
    /// How many of them are in one process, and share a budget, a breaker and a limit.
    pub clients_per_process: u32,
    /// When they call.
    pub arrivals: Arrivals,
    /// How they call.
    pub conduct: Conduct,
    /// The number of the server that they call.
    pub server: usize,
    /// The way to it.
    pub network: Network,
    /// The number of the group as which the server makes a call of its own for each of these requests,
    /// when its work is done and before it answers; the request fails when that call does. So the
    /// worker is held for as long as that takes.
    pub onward: Option<usize>,
    /// Whether its calls are among those that are counted.
    pub counts: bool,
    /// Whether a request that its caller has given up leaves the server's queue, or never gets there.
    /// Work that was begun goes on in any case.
    pub cancels: bool,
}

/// When calls begin.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Arrivals {
    /// At random, independent of each other, by the rate of all clients together.
    Poisson(Rate),
    /// One after the other, in equal steps, by the rate of all clients together.
    Even(Rate),
    /// A client's next call begins a while after its last has ended.
    Serial {
        /// How long after.
        think: Law,
    },
    /// A client's next call is due a while after its last began, and begins as soon as that has ended.
    Paced {
        /// How long after.
        every: Law,
    },
    /// Each client makes one call, all at one moment.
    Batch {
        /// From the start.
        at: Duration,
    },
    /// As they are written down, in order of time: when, and the number of the client among those of
    /// its group.
    Trace(Vec<(Duration, u32)>),
    /// No call but those that servers make.
    Never,
}

/// Calls per second over time: straight lines between points, level before the first and after the
/// last. Two points of one moment make a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate {
    points: Vec<(Duration, f64)>,
}

/// How a client calls: the shipped policy, with the parts of it that are in use, or other people's in
/// their place.
#[derive(Debug, Clone)]
pub struct Conduct {
    /// The rules of retry, timeouts, breaker and limit.
    pub policy: Policy,
    /// Who pays for retries.
    pub payment: Payment,
    /// Which breaker there is.
    pub breaker: Guarding,
    /// Whether an attempt has a timeout.
    pub attempt_timeout: bool,
    /// Whether the policy's total time ends a call that is under way.
    pub deadline: bool,
}

/// Who pays for retries.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Payment {
    /// Nobody: every retry is made.
    Free,
    /// The policy's budget.
    Budget,
    /// A plain bucket of tokens without time: full at the start, a retry takes one.
    Bucket {
        /// Tokens that each call or each success brings.
        ratio: Ratio,
        /// Whether only a success does.
        on_success: bool,
        /// The most that it holds.
        size: f64,
    },
    /// tower's `TpsBudget`: a share of what was counted within a window, and a floor.
    Window {
        /// Calls that pay for one retry: 5 for 20 %.
        calls_per_retry: u32,
        /// Retries per second that need no call.
        floor: u32,
        /// How long what was counted counts.
        window: Duration,
        /// Whether only a success counts.
        on_success: bool,
    },
}

/// Which breaker turns calls away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Guarding {
    /// None.
    Off,
    /// The policy's.
    Breaker,
    /// A plain one, as textbooks have it.
    Plain {
        /// The failures in a row that open it.
        failures: u32,
        /// How long it stays open, before one call is let through to see.
        sleep: Duration,
    },
}

/// The way between clients and a server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// How long it takes, each way.
    pub delay: Law,
    /// The probability that a request or an answer is lost.
    pub loss: f64,
}

/// A dependency.
#[derive(Debug, Clone)]
pub struct Server {
    /// How many requests it works on at once; `None` for any number.
    pub workers: Option<u32>,
    /// How long the work takes.
    pub service: Law,
    /// How long a request takes that fails by the error rate; `None` for as long as any other.
    pub failing: Option<Law>,
    /// What each other request in work adds to that.
    pub slower_by: Duration,
    /// How many requests wait for a worker; any more are answered 503 at once. `None` for any number.
    pub queue: Option<u32>,
    /// Whether the last to come is the first to be served.
    pub last_first: bool,
    /// Whether a request whose caller has gone is left out when its turn comes.
    pub drops_expired: bool,
    /// The probability that a request fails, with 500 when its work is done.
    pub error_rate: f64,
    /// The probability that all requests of a call fail, however often it is tried: a class of calls
    /// that never works.
    pub hopeless: f64,
    /// The `Retry-After` of its answers that are server errors, in whole seconds.
    pub retry_after: Option<Duration>,
    /// A queue that makes it fall over, and how long it is down then.
    pub crash: Option<(u32, Duration)>,
}

/// Something that goes wrong for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// The number of the server concerned.
    pub server: usize,
    /// When it begins, from the start.
    pub from: Duration,
    /// When it ends.
    pub to: Duration,
    /// What it is.
    pub what: Fault,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Every request is answered at once with this status.
    Down {
        /// 503, say.
        status: u16,
    },
    /// Requests vanish.
    BlackHole,
    /// Requests are held up on their way and arrive together when it is over.
    Hold,
    /// Work takes this many times as long.
    Slow(f64),
    /// This share of the workers is left.
    Capacity(f64),
    /// This share of requests fails, beside those of the server's own error rate.
    Errors(f64),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down { status } => write!(f, "down, {status}"),
            Self::BlackHole => f.write_str("black hole"),
            Self::Hold => f.write_str("held up"),
            Self::Slow(times) => write!(f, "slow ×{times}"),
            Self::Capacity(share) => write!(f, "capacity {:.3} %", share * 100.0),
            Self::Errors(share) => write!(f, "{} % errors", share * 100.0),
        }
    }
}

impl Arrivals {
    /// The same with `load` times the calls, where it has a rate.
    #[must_use]
    pub fn times(&self, load: f64) -> Self {
        match self {
            Self::Poisson(rate) => Self::Poisson(rate.times(load)),
            Self::Even(rate) => Self::Even(rate.times(load)),
            other => other.clone(),
        }
    }
}

impl Rate {
    /// The same all the time.
    #[must_use]
    pub fn constant(per_second: f64) -> Self {
        Self { points: vec![(Duration::ZERO, per_second)] }
    }

    /// Straight lines between `points`, which are put in order of time. Rates below 0 count as 0.
    #[must_use]
    pub fn through(mut points: Vec<(Duration, f64)>) -> Self {
        points.sort_by_key(|(at, _)| *at);
        for (_, rate) in &mut points {
            *rate = rate.max(0.0);
        }
        Self { points }
    }

    fn times(&self, load: f64) -> Self {
        Self::through(self.points.iter().map(|(at, rate)| (*at, rate * load)).collect())
    }

    /// Calls per second at `at`.
    #[must_use]
    pub fn at(&self, at: Duration) -> f64 {
        let after = self.points.partition_point(|(point, _)| *point <= at);
        let before = after.checked_sub(1).and_then(|before| self.points.get(before));
        match (before, self.points.get(after)) {
            (Some((from, rate)), Some((to, next))) => {
                let done = (at - *from).as_secs_f64() / (*to - *from).as_secs_f64();
                rate + (next - rate) * done
            }
            (Some((_, rate)), None) | (None, Some((_, rate))) => *rate,
            (None, None) => 0.0,
        }
    }

    /// The highest that it ever is.
    #[must_use]
    pub fn peak(&self) -> f64 {
        self.points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// The first moment after `at` from which it may be above 0, if it is 0 at `at`.
    pub(crate) fn resumes(&self, at: Duration) -> Option<Duration> {
        let next = self.points.partition_point(|(point, _)| *point <= at);
        let rest = self.points.get(next.saturating_sub(1)..)?;
        let rising = rest.windows(2).find(|pair| matches!(pair, [_, (_, rate)] if *rate > 0.0))?;
        rising.first().map(|(from, _)| (*from).max(at))
    }
}

impl Model {
    /// The calls that begin together, at the least.
    pub(crate) fn at_once(&self) -> usize {
        let batches = self.groups.iter().filter(|it| matches!(it.arrivals, Arrivals::Batch { .. }));
        batches.map(|group| group.clients as usize).sum()
    }

    /// The share of calls that may be added as retries at the watched server, where a budget says so.
    pub(crate) fn budget_ratio(&self) -> Option<f64> {
        let mut there = self.groups.iter().filter(|group| group.server == self.watched);
        let conduct = &there.find(|group| group.conduct.payment == Payment::Budget)?.conduct;
        Some(conduct.policy.budget().ratio.as_f64())
    }
}

impl Conduct {
    /// All of the stack, by `policy`.
    #[must_use]
    pub const fn stack(policy: Policy) -> Self {
        Self {
            policy,
            payment: Payment::Budget,
            breaker: Guarding::Breaker,
            attempt_timeout: true,
            deadline: true,
        }
    }

    /// Nothing but attempts and the waits between them.
    #[must_use]
    pub const fn plain(policy: Policy) -> Self {
        Self {
            policy,
            payment: Payment::Free,
            breaker: Guarding::Off,
            attempt_timeout: true,
            deadline: false,
        }
    }
}

impl Network {
    /// One that takes no time and loses nothing.
    pub const INSTANT: Self = Self { delay: Law::NOTHING, loss: 0.0 };
}

impl Server {
    /// Any number of requests at once, each for as long as `service` says.
    #[must_use]
    pub const fn new(service: Law) -> Self {
        Self {
            workers: None,
            service,
            failing: None,
            slower_by: Duration::ZERO,
            queue: None,
            last_first: false,
            drops_expired: false,
            error_rate: 0.0,
            hopeless: 0.0,
            retry_after: None,
            crash: None,
        }
    }

    /// What it can answer per second, where it has a number of workers.
    #[must_use]
    pub fn capacity(&self) -> Option<f64> {
        self.workers.map(|workers| f64::from(workers) / self.service.mean().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_rate_goes_straight_from_point_to_point() {
        let rate = Rate::through(vec![(s(10), 40.0), (s(20), 80.0), (s(20), 10.0)]);
        assert_eq!(rate.at(s(0)), 40.0);
        assert_eq!(rate.at(s(15)), 60.0);
        assert_eq!(rate.at(s(20)), 10.0);
        assert_eq!(rate.at(s(99)), 10.0);
        assert_eq!(rate.peak(), 80.0);
    }

    #[test]
    fn a_rate_of_nothing_resumes_where_it_rises() {
        let idle = Rate::through(vec![(s(0), 0.0), (s(600), 0.0), (s(600), 5.0)]);
        assert_eq!(idle.resumes(s(3)), Some(s(600)));
        assert_eq!(Rate::constant(0.0).resumes(s(3)), None);
    }
}
