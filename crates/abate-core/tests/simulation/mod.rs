//! Calls of one process to one dependency in virtual time, event by event: the layer's part, with
//! every decision taken by the shipped `Session` and `Budget`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::{Duration, Instant, SystemTime};

use abate_core::budget::{Budget, Denied, Grant};
use abate_core::deadline::Deadline;
use abate_core::outcome::Outcome;
use abate_core::policy::Policy;
use abate_core::rng::{Seed, Stream, Streams};
use abate_core::safety::Safety;
use abate_core::session::{Bounds, Decision, Session, StopReason, Traits};
use http::Response;
use http::header::{DATE, RETRY_AFTER};

/// Nanoseconds from the start.
pub(crate) type At = u64;

pub(crate) const SECOND: At = 1_000_000_000;
pub(crate) const MS: At = 1_000_000;

const TRAITS: Traits = Traits { safety: Safety::Repeatable, replayable: true, nested: false };

/// What the dependency answers to one attempt, and how long it takes over it.
pub(crate) struct Reply {
    pub(crate) response: Response<()>,
    pub(crate) takes: At,
}

pub(crate) fn reply(status: u16, takes: At) -> Reply {
    Reply { response: Response::builder().status(status).body(()).unwrap(), takes }
}

/// A 503 at `at` that asks, by its date, to be left alone until `date`.
pub(crate) fn not_before(date: At, at: At, takes: At) -> Reply {
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_930_478_400);
    let wall = |at| httpdate::fmt_http_date(noon + Duration::from_nanos(at));
    let response = Response::builder().status(503);
    let response = response.header(DATE, wall(at)).header(RETRY_AFTER, wall(date));
    Reply { response: response.body(()).unwrap(), takes }
}

/// An attempt as the dependency sees it.
pub(crate) struct Attempt {
    /// The number of its call, from 0.
    pub(crate) number: usize,
    pub(crate) at: At,
    /// A fresh draw, even over `0.0..=1.0`.
    pub(crate) luck: f64,
}

/// What became of all calls.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) calls: Vec<At>,
    pub(crate) granted: Vec<At>,
    pub(crate) retries: Vec<At>,
    pub(crate) successes: Vec<At>,
    /// Calls that ended with the response they held, by reason.
    pub(crate) stopped: BTreeMap<&'static str, u32>,
    /// Calls whose response was gone already when they got no slot, by reason.
    pub(crate) lost: BTreeMap<&'static str, u32>,
}

impl Tally {
    /// Attempts per call over `from..to`.
    pub(crate) fn load(&self, from: At, to: At) -> f64 {
        let (calls, retries) = (within(&self.calls, from, to), within(&self.retries, from, to));
        1.0 + retries as f64 / calls as f64
    }

    /// The most attempts per call in any one second of `from..to`, looked at every 100 ms.
    pub(crate) fn worst_second(&self, from: At, to: At) -> f64 {
        let starts = (from..=to - SECOND).step_by((100 * MS) as usize);
        starts.map(|start| self.load(start, start + SECOND)).fold(0.0, f64::max)
    }

    /// The share of calls that succeeded.
    pub(crate) fn success(&self) -> f64 {
        self.successes.len() as f64 / self.calls.len() as f64
    }

    /// The share of calls that gave up a response for a retry which the pace then refused.
    pub(crate) fn lost_to_pace(&self) -> f64 {
        let lost = self.lost.get(StopReason::Pace.as_str()).copied().unwrap_or(0);
        f64::from(lost) / self.calls.len() as f64
    }
}

/// How many of `times`, which rise, lie in `from..to`.
pub(crate) fn within(times: &[At], from: At, to: At) -> usize {
    let before = |end| times.partition_point(|at| *at < end);
    before(to) - before(from)
}

/// `rate` calls per second, evenly, over `from..to`.
pub(crate) fn evenly(rate: u64, from: At, to: At) -> impl Iterator<Item = At> {
    (from..to).step_by((SECOND / rate) as usize)
}

/// Runs calls that arrive at `arrivals`, answered by `dependency`, until the last has ended.
pub(crate) fn run(
    policy: &Policy,
    budgeted: bool,
    seed: u64,
    arrivals: impl IntoIterator<Item = At>,
    dependency: impl FnMut(Attempt) -> Reply,
) -> Tally {
    let base = base();
    let mut simulation = Simulation {
        policy,
        base,
        budget: budgeted.then(|| Budget::new(policy.budget(), base)),
        jitter: Streams::new(Seed::new(seed)),
        faults: Seed::new(!seed).stream(0),
        events: BinaryHeap::new(),
        steps: Vec::new(),
        calls: Vec::new(),
        tally: Tally::default(),
        dependency,
    };
    for at in arrivals {
        let session = Session::new(policy, Deadline::NEVER, simulation.instant(at));
        simulation.calls.push(Call { session, grant: None });
        simulation.after(at, Step::Send(simulation.calls.len() - 1));
    }
    while let Some(Reverse((at, number))) = simulation.events.pop() {
        simulation.take(at, number);
    }
    simulation.tally
}

struct Simulation<'a, D> {
    policy: &'a Policy,
    base: Instant,
    budget: Option<Budget>,
    jitter: Streams,
    faults: Stream,
    /// Moment and number of each step to come: at one moment, first planned is first taken.
    events: BinaryHeap<Reverse<(At, usize)>>,
    steps: Vec<Option<Step>>,
    calls: Vec<Call>,
    tally: Tally,
    dependency: D,
}

struct Call {
    session: Session,
    grant: Option<Grant>,
}

enum Step {
    Send(usize),
    Answer(usize, Response<()>),
    BackoffOver(usize),
}

impl<D: FnMut(Attempt) -> Reply> Simulation<'_, D> {
    fn take(&mut self, at: At, number: usize) {
        match self.steps[number].take().expect("each step is taken once") {
            Step::Send(call) => self.send(at, call),
            Step::Answer(call, response) => self.decide(at, call, &response),
            Step::BackoffOver(call) => self.ask_for_slot(at, call),
        }
    }

    fn send(&mut self, at: At, call: usize) {
        let now = self.instant(at);
        let Call { session, grant } = &mut self.calls[call];
        let first = session.attempts() == 0;
        session.sent(self.budget.as_ref(), now);
        if let Some(grant) = grant.take() {
            grant.sent();
        }
        if first { &mut self.tally.calls } else { &mut self.tally.retries }.push(at);
        let luck = self.faults.up_to(Duration::from_nanos(SECOND)).as_secs_f64();
        let Reply { response, takes } = (self.dependency)(Attempt { number: call, at, luck });
        self.after(at + takes, Step::Answer(call, response));
    }

    fn decide(&mut self, at: At, call: usize, response: &Response<()>) {
        let now = self.instant(at);
        let (policy, budget, streams) = (self.policy, self.budget.as_ref(), &self.jitter);
        let bounds = Bounds { policy, budget, streams };
        let wall = || -> SystemTime { unreachable!("every server date comes with a `Date`") };
        let session = &mut self.calls[call].session;
        match session.decide(bounds, TRAITS, &Outcome::of(response), now, wall) {
            Decision::Done => self.tally.successes.push(at),
            Decision::Stop(stop) => {
                *self.tally.stopped.entry(stop.reason.as_str()).or_default() += 1
            }
            Decision::Retry(retry) => {
                self.tally.granted.push(at);
                self.calls[call].grant = retry.grant;
                let over = at + u64::try_from(retry.after.as_nanos()).unwrap();
                self.after(over, Step::BackoffOver(call));
            }
        }
    }

    fn ask_for_slot(&mut self, at: At, call: usize) {
        let now = self.instant(at);
        let Call { session, grant } = &mut self.calls[call];
        let left = session.deadline().remaining(now);
        match grant.as_mut().map_or(Ok(Duration::ZERO), |grant| grant.slot(now, left)) {
            Ok(wait) => self.after(at + u64::try_from(wait.as_nanos()).unwrap(), Step::Send(call)),
            Err(denied) => self.lose(call, denied),
        }
    }

    fn lose(&mut self, call: usize, denied: Denied) {
        self.calls[call].grant = None;
        *self.tally.lost.entry(StopReason::from(denied).as_str()).or_default() += 1;
    }

    fn after(&mut self, at: At, step: Step) {
        self.events.push(Reverse((at, self.steps.len())));
        self.steps.push(Some(step));
    }

    fn instant(&self, at: At) -> Instant {
        self.base + Duration::from_nanos(at)
    }
}

#[expect(clippy::disallowed_methods, reason = "the only way to an `Instant`; read once")]
fn base() -> Instant {
    Instant::now()
}
