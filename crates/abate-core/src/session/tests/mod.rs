mod accounts;
mod attempts;
mod stops;

use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, StatusCode};

use super::{Bounds, Decision, Retry, Session, Stop, StopReason, Traits};
use crate::backoff::{DelaySource, Jitter};
use crate::budget::{self, Budget};
use crate::classify::Transient;
use crate::deadline::Deadline;
use crate::outcome::{Fault, Outcome};
use crate::policy::{Policy, PolicyBuilder};
use crate::ratio::Ratio;
use crate::retry_after::{Hint, Pushback};
use crate::rng::{Seed, Streams};
use crate::safety::Safety;

const GET: Traits = Traits { safety: Safety::Repeatable, replayable: true, nested: false };
const POST: Traits = Traits { safety: Safety::IfRefused, ..GET };
const STREAM: Traits = Traits { replayable: false, ..GET };
const INNER: Traits = Traits { nested: true, ..GET };

/// What calls have in common. Its time stands still unless moved.
struct Client {
    policy: Policy,
    budget: Option<Budget>,
    streams: Streams,
    now: Instant,
}

impl Client {
    /// The default policy, without a budget.
    fn new() -> Self {
        Self::with(Policy::builder())
    }

    fn with(policy: PolicyBuilder) -> Self {
        let policy = policy.build().unwrap();
        Self { policy, budget: None, streams: Streams::new(Seed::new(7)), now: base() }
    }

    fn budget(mut self, ratio: f64, floor: f64, start: f64, burst: u32) -> Self {
        let rules = budget::Rules {
            ratio: Ratio::new(ratio).unwrap(),
            floor,
            start,
            burst,
            ..Policy::default().budget()
        };
        self.budget = Some(Budget::new(rules, self.now));
        self
    }

    fn own_budget(mut self) -> Self {
        self.budget = Some(Budget::new(self.policy.budget(), self.now));
        self
    }

    fn call(&self) -> Session {
        Session::new(&self.policy, Deadline::NEVER, self.now)
    }

    fn call_within(&self, millis: u64) -> Session {
        let deadline = Deadline::after(self.now, Duration::from_millis(millis));
        Session::new(&self.policy, deadline, self.now)
    }

    fn decide(&self, call: &mut Session, traits: Traits, outcome: &Outcome<'_>) -> Decision {
        let Self { policy, budget, streams, now } = self;
        let bounds = Bounds { policy, budget: budget.as_ref(), streams };
        let wall = || -> SystemTime { panic!("nobody needs the wall clock here") };
        call.decide(bounds, traits, outcome, *now, wall)
    }

    fn answer(&self, call: &mut Session, traits: Traits, code: u16) -> Decision {
        self.answer_with(call, traits, code, &HeaderMap::new())
    }

    fn answer_with(
        &self,
        call: &mut Session,
        traits: Traits,
        code: u16,
        headers: &HeaderMap,
    ) -> Decision {
        let status = StatusCode::from_u16(code).unwrap();
        self.decide(call, traits, &Outcome::Response { status, headers })
    }

    fn fault(&self, call: &mut Session, traits: Traits, fault: Fault) -> Decision {
        self.decide(call, traits, &Outcome::Fault(fault))
    }

    fn tokens(&self) -> f64 {
        self.budget.as_ref().unwrap().tokens(self.now)
    }

    /// The calls counted so far, with a ratio of one and no floor: then the pace is the rate.
    fn counted(&self) -> f64 {
        self.budget.as_ref().unwrap().pace(self.now + Duration::from_micros(1)).round()
    }
}

#[track_caller]
fn retry(decision: Decision) -> Retry {
    match decision {
        Decision::Retry(retry) => retry,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn stop(decision: Decision) -> Stop {
    match decision {
        Decision::Stop(stop) => stop,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn done(decision: Decision) {
    assert!(matches!(decision, Decision::Done), "{decision:?}");
}

fn retry_after(seconds: u32) -> HeaderMap {
    HeaderMap::from_iter([(http::header::RETRY_AFTER, seconds.into())])
}

#[expect(clippy::disallowed_methods, reason = "the only way to an `Instant`; read once a test")]
fn base() -> Instant {
    Instant::now()
}
