//! Whole fleets in an outage, beside an ideal: one bucket that all processes ask at once.
//!
//! Ratio 0.2 earned on success, floor 10 retries/s, three attempts with full jitter over 100 and 200 ms; a minute and a
//! half, of which what fails does so from 30 s to 75 s. A message takes a millisecond each way.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use abate_core::budget::{Budget, Costs, Earn, Grant, Rules};
use abate_core::classify::Transient;
use abate_core::fleet::{ClientCore, Message, PoolCore, Reply, StoreFailure, Terms, TermsError};
use abate_core::ratio::Ratio;
use abate_core::rng::{Seed, Stream};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const END: u64 = 90 * SECOND;
const OUTAGE: std::ops::Range<u64> = 30 * SECOND..75 * SECOND;
const FLOOR: f64 = 10.0;
const ATTEMPTS: u32 = 3;

#[derive(Clone, Copy)]
struct Fleet {
    processes: usize,
    /// Calls per second of each.
    rate: f64,
    /// The first so many processes fail in the outage, and so many of a hundred of their calls.
    failing: usize,
    percent: u64,
    /// So many processes cannot reach the pool from 40 s to 65 s.
    cut_off: usize,
    interval: Duration,
}

impl Fleet {
    const HUNDRED: Self = Self {
        processes: 100,
        rate: 20.0,
        failing: 100,
        percent: 100,
        cut_off: 0,
        interval: Duration::from_secs(1),
    };

    fn calls(&self) -> f64 {
        self.processes as f64 * self.rate
    }
}

#[derive(Default)]
struct Seen {
    sent: u64,
    denied: u64,
    messages: u64,
    /// Retries sent, and calls made, in each second.
    retries: Vec<f64>,
    calls: Vec<f64>,
    successes: f64,
}

impl Seen {
    fn worst(&self, seconds: std::ops::Range<usize>) -> f64 {
        let of = |second: usize| 1.0 + self.retries[second] / self.calls[second].max(1.0);
        seconds.map(of).fold(0.0, f64::max)
    }
}

enum Step {
    Call(usize),
    Slot(usize, Box<Grant>, u32),
    Due(usize),
    Arrives(usize, Message),
    Answered(usize, u64, Reply),
    Lost(usize, u64),
}

struct World {
    fleet: Fleet,
    start: Instant,
    now: u64,
    stream: Stream,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    steps: Vec<Option<Step>>,
    clients: Vec<ClientCore>,
    due: Vec<u64>,
    /// In the ideal: one budget for all.
    one: Option<Budget>,
    pool: PoolCore,
    terms: Terms,
    seen: Seen,
}

#[expect(clippy::disallowed_methods, reason = "any moment to start from")]
fn moment() -> Instant {
    Instant::now()
}

fn run(fleet: Fleet, ideal: bool, seed: u64) -> Result<Seen, TermsError> {
    let start = moment();
    let ratio = Ratio::from_percent(20).unwrap_or(Ratio::ZERO);
    let terms = Terms::new(ratio, FLOOR)?.with_interval(fleet.interval)?;
    let (earn, costs) = (Earn::PerSuccess, Costs::ONE);
    let rules = Rules { ratio, earn, costs, floor: FLOOR, start: FLOOR, burst: 1 };
    let client = |n| ClientCore::new(rules, terms, Seed::new(seed).part(n as u64), start);
    let seconds = (END / SECOND) as usize + 1;
    let mut world = World {
        fleet,
        start,
        now: 0,
        stream: Seed::new(seed).stream(0),
        events: BinaryHeap::new(),
        steps: Vec::new(),
        clients: if ideal { vec![] } else { (0..fleet.processes).map(client).collect() },
        due: vec![u64::MAX; fleet.processes],
        one: ideal.then(|| Budget::new(rules, start)),
        pool: PoolCore::default(),
        terms,
        seen: Seen { retries: vec![0.0; seconds], calls: vec![0.0; seconds], ..Seen::default() },
    };
    for process in 0..fleet.processes {
        world.call_comes(process);
        world.look_when_due(process);
    }
    while let Some(Reverse((at, step))) = world.events.pop().filter(|event| event.0.0 < END) {
        world.now = at;
        if let Some(step) = usize::try_from(step).ok().and_then(|it| world.steps[it].take()) {
            world.step(step);
        }
    }
    Ok(world.seen)
}

impl World {
    fn step(&mut self, step: Step) {
        match step {
            Step::Call(process) => self.calls(process),
            Step::Slot(process, grant, attempt) => self.slot(process, grant, attempt),
            Step::Due(process) => self.sends(process),
            Step::Arrives(process, message) => {
                let micros = 1_000_000_000 + self.now / 1_000;
                let reply = self.pool.exchange(&self.terms, micros, &message);
                self.after(MS, Step::Answered(process, message.number, reply));
            }
            Step::Answered(process, number, reply) => {
                let now = self.instant();
                self.clients[process].answered(number, &reply, now);
                self.look_when_due(process);
            }
            Step::Lost(process, number) => {
                let now = self.instant();
                self.clients[process].failed(number, StoreFailure::Unknown, now);
                self.look_when_due(process);
            }
        }
    }

    fn call_comes(&mut self, process: usize) {
        let even = (self.stream.below(1 << 53) as f64 + 1.0) / (1_u64 << 53) as f64;
        let wait = -even.ln() / self.fleet.rate * SECOND as f64;
        self.after(wait as u64, Step::Call(process));
    }

    fn calls(&mut self, process: usize) {
        self.call_comes(process);
        let now = self.instant();
        self.seen.calls[(self.now / SECOND) as usize] += 1.0;
        self.budget(process).count_call(now);
        self.attempted(process, 1);
    }

    fn attempted(&mut self, process: usize, attempt: u32) {
        let fails = process < self.fleet.failing
            && OUTAGE.contains(&self.now)
            && self.stream.below(100) < self.fleet.percent;
        if !fails {
            self.budget(process).earn();
            self.seen.successes += 1.0;
            return;
        }
        if attempt == ATTEMPTS {
            return;
        }
        let now = self.instant();
        let delay = self.stream.up_to(Duration::from_millis(100 << (attempt - 1)));
        match self.budget(process).grant(now, delay, Duration::MAX, Transient::Server) {
            Ok(grant) => {
                let delay = delay.as_nanos() as u64;
                self.after(delay, Step::Slot(process, Box::new(grant), attempt));
                self.look_when_due(process);
            }
            Err(_) => self.seen.denied += 1,
        }
    }

    fn slot(&mut self, process: usize, mut grant: Box<Grant>, attempt: u32) {
        match grant.slot(self.instant(), Duration::MAX) {
            Ok(Duration::ZERO) => {
                grant.sent();
                self.seen.sent += 1;
                self.seen.retries[(self.now / SECOND) as usize] += 1.0;
                self.attempted(process, attempt + 1);
            }
            Ok(wait) => self.after(wait.as_nanos() as u64, Step::Slot(process, grant, attempt)),
            Err(_) => self.seen.denied += 1,
        }
    }

    fn sends(&mut self, process: usize) {
        if self.due[process] != self.now {
            return;
        }
        self.due[process] = u64::MAX;
        let now = self.instant();
        if let Some(message) = self.clients[process].message(now) {
            self.seen.messages += 1;
            let cut_off = process < self.fleet.cut_off && (40..65).contains(&(self.now / SECOND));
            if cut_off {
                self.after(250 * MS, Step::Lost(process, message.number));
            } else {
                self.after(MS, Step::Arrives(process, message));
            }
        }
        self.look_when_due(process);
    }

    fn look_when_due(&mut self, process: usize) {
        let now = self.instant();
        let Some(due) = self.clients.get(process).and_then(|client| client.due(now)) else {
            return;
        };
        let due = ((due - self.start).as_nanos() as u64).max(self.now);
        if due < self.due[process] {
            self.due[process] = due;
            self.after(due - self.now, Step::Due(process));
        }
    }

    fn budget(&self, process: usize) -> &Budget {
        self.one.as_ref().unwrap_or_else(|| self.clients[process].budget())
    }

    fn after(&mut self, wait: u64, step: Step) {
        let place = self.steps.len() as u64;
        self.events.push(Reverse((self.now + wait, place)));
        self.steps.push(Some(step));
    }

    fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }
}

/// Ours, and the ideal.
fn both(name: &str, fleet: Fleet) -> Result<(Seen, Seen), TermsError> {
    let (ours, ideal) = (run(fleet, false, 7)?, run(fleet, true, 7)?);
    let calls = fleet.calls();
    let told = [ours.sent, ideal.sent, ours.denied, ideal.denied, ours.messages];
    let worst = [ours.worst(5..90), ideal.worst(5..90)];
    let saved = (0.2 * calls + FLOOR) * 10.0;
    // What was earned, what comes by itself, and what was saved.
    let bound = 0.2 * ours.successes + FLOOR * 90.0 + saved;
    assert!(ours.sent as f64 <= bound, "{name}: {told:?}, {worst:?}");
    Ok((ours, ideal))
}

fn share(ours: &Seen, ideal: &Seen) -> f64 {
    ours.sent as f64 / ideal.sent as f64
}

#[test]
fn one_process_of_a_hundred_that_fails_is_not_denied() {
    let (ours, ideal) = both("one of 100", Fleet { failing: 1, ..Fleet::HUNDRED }).unwrap();
    assert!(share(&ours, &ideal) >= 0.965, "{}", ours.sent);
    assert!(ours.denied * 100 <= ours.sent, "{} denied", ours.denied);
    assert!(ours.worst(5..90) <= 1.25 + FLOOR / 2_000.0);
}

#[test]
fn half_of_the_fleet_cut_off_keeps_the_bound() {
    let fleet = Fleet { percent: 70, cut_off: 50, ..Fleet::HUNDRED };
    let (ours, ideal) = both("half cut off", fleet).unwrap();
    assert!(ours.sent >= 8_500 && share(&ours, &ideal) >= 0.957, "{}", ours.sent);
    assert!(ours.worst(5..90) <= 1.35);
}

#[test]
fn a_thousand_processes_of_few_calls_share_what_they_earn() {
    let fleet =
        Fleet { processes: 1_000, rate: 0.2, failing: 1_000, percent: 70, ..Fleet::HUNDRED };
    let (ours, ideal) = both("1,000 sparse", fleet).unwrap();
    assert!(ours.sent >= 1_150 && share(&ours, &ideal) >= 0.85, "{}", ours.sent);
    assert!(ours.worst(5..90) <= 1.25 + FLOOR / 200.0);
}

#[test]
fn half_of_the_fleet_failing_gets_most_of_what_the_other_half_earns() {
    let (ours, ideal) = both("half failing", Fleet { failing: 50, ..Fleet::HUNDRED }).unwrap();
    assert!(ours.sent >= 9_800 && share(&ours, &ideal) >= 0.835, "{}", ours.sent);
    assert!(ours.worst(5..90) <= 1.25 + FLOOR / 2_000.0);
}

#[test]
fn ten_thousand_processes_do_not_overrun_the_store() {
    let interval = Duration::from_secs(2);
    let sparse = Fleet { processes: 10_000, rate: 0.5, failing: 10_000, ..Fleet::HUNDRED };
    let (ours, _) = both("10,000 failing", Fleet { interval, ..sparse }).unwrap();
    assert!(ours.messages <= 8_000 * 90, "{} messages", ours.messages);
    assert!(ours.worst(5..90) <= 1.25 + FLOOR / 5_000.0);
}

#[test]
fn an_outage_for_all_is_no_storm() {
    let (ours, _) = both("all failing", Fleet::HUNDRED).unwrap();
    assert!(ours.worst(5..90) <= 1.25 + FLOOR / 2_000.0);
}
