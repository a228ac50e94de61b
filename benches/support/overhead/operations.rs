use std::hint::black_box;
use std::time::{Duration, Instant, SystemTime};

use abate::Policy;
use abate::decisions::breaker::Breaker;
use abate::decisions::budget::{Budget, Rules};
use abate::decisions::classify::{Health, Transient};
use abate::decisions::retry_after::{Hint, HintSources};
use abate::decisions::rng::Seed;
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};
use tower::retry::budget::{Budget as _, TpsBudget};

use super::times::{in_turns, median, time};

const TIMES: u32 = 20_000;

/// One decision by itself, at a time that is handed in.
pub(super) struct Operation {
    pub(super) what: &'static str,
    /// The most it may take, where it is ours.
    pub(super) at_most: Option<f64>,
    pub(super) ns: f64,
    run: Box<dyn FnMut()>,
}

impl Operation {
    fn new(what: &'static str, at_most: Option<f64>, mut run: impl FnMut() + 'static) -> Self {
        let run = Box::new(move || (0..TIMES).for_each(|_| run()));
        Self { what, at_most, ns: f64::NAN, run }
    }
}

pub(super) fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    budgets(&mut all);
    breakers(&mut all);
    hints(&mut all);
    let mut runs: Vec<_> =
        all.iter_mut().map(|it| || time(&mut it.run) / f64::from(TIMES)).collect();
    let figures = in_turns(&mut runs);
    drop(runs);
    for (operation, ns) in all.iter_mut().zip(figures) {
        operation.ns = median(ns);
    }
    all
}

fn budgets(all: &mut Vec<Operation>) {
    let now = Instant::now();
    let rich = Rules { start: 1e9, burst: u32::MAX, ..Policy::default().budget() };
    let budget = Budget::new(rich, now);
    let withdrawn = budget.clone();
    let theirs = || TpsBudget::new(Duration::from_secs(10), 100_000_000, 0.2);
    all.push(Operation::new("budget: earn", Some(15.0), move || black_box(&budget).earn()));
    let deposits = theirs();
    all.push(Operation::new("tower's `TpsBudget`: deposit", None, move || {
        black_box(&deposits).deposit();
    }));
    all.push(Operation::new("budget: grant, and it is sent", Some(25.0), move || {
        let grant =
            withdrawn.grant(black_box(now), Duration::ZERO, Duration::MAX, Transient::Server);
        if let Ok(grant) = black_box(grant) {
            grant.sent();
        }
    }));
    let withdraws = theirs();
    all.push(Operation::new("tower's `TpsBudget`: withdraw", None, move || {
        black_box(black_box(&withdraws).withdraw());
    }));
}

fn breakers(all: &mut Vec<Operation>) {
    let now = Instant::now();
    let breaker = Breaker::new(Policy::default().breaker(), Seed::new(1), now);
    let admitting = breaker.clone();
    all.push(Operation::new("breaker: admit, and it is dropped", None, move || {
        black_box(admitting.admit(black_box(now)).is_ok());
    }));
    all.push(Operation::new("breaker: admit and record a success", None, move || {
        if let Ok(admitted) = breaker.admit(black_box(now)) {
            black_box(admitted.permit.record(Health::Success, now, now));
        }
    }));
}

fn hints(all: &mut Vec<Operation>) {
    const LATER: &str = "Wed, 21 Oct 2026 07:28:30 GMT";
    let read = |headers: &[(HeaderName, &'static str)]| {
        let headers: HeaderMap =
            headers.iter().map(|(name, it)| (name.clone(), HeaderValue::from_static(it))).collect();
        let sources = HintSources::new();
        move || {
            black_box(Hint::read(black_box(&headers), &sources, || SystemTime::UNIX_EPOCH));
        }
    };
    all.push(Operation::new("hint: no header says a thing", None, read(&[])));
    all.push(Operation::new("hint: seconds", Some(6.0), read(&[(RETRY_AFTER, "120")])));
    all.push(Operation::new("hint: a date", Some(40.0), read(&[(RETRY_AFTER, LATER)])));
    let both = [(RETRY_AFTER, LATER), (DATE, "Wed, 21 Oct 2026 07:28:00 GMT")];
    all.push(Operation::new("hint: a date, held against the response's own", None, read(&both)));
}
