//! A fleet in all weathers: what is lost, doubled, delayed, forgotten and put back.
//!
//! Two ghosts look on. One compares before and after each event, at one and the same moment, when
//! nothing fades: what leaves one place is in another, on its way, spent or destroyed. The other keeps
//! the most that may be anywhere, `ratio·earnings + floor·T` fading since it was earned, and nothing.

use std::time::{Duration, Instant};

use super::super::{ClientCore, Message, PoolCore, Reply, StoreFailure};
use super::{ask, moment, ms, process, succeed, terms};
use crate::budget::{Grant, TAU};
use crate::rng::{Seed, Stream};

const FLOOR: f64 = 5.0;
const RATIO: f64 = 0.2;
const SEEDS: u64 = 10;
const EVENTS: u64 = 100_000;
const PROCESSES: usize = 5;

/// Rounding, in tokens: millionths on their way, billionths here.
const CLOSE: f64 = 1e-5;

struct Process {
    client: ClientCore,
    failing: bool,
    cut_off: bool,
    /// Retries that were granted, and when.
    waiting: Vec<(Grant, Instant)>,
    /// What is on its way to the pool, since when, and what came of it.
    message: Option<(Message, Instant)>,
    reply: Option<Reply>,
    /// An answer that came too late, or was heard already.
    stale: Option<(u64, Reply)>,
}

struct World {
    seed: u64,
    stream: Stream,
    now: Instant,
    start: Instant,
    processes: Vec<Process>,
    pool: PoolCore,
    /// An older state, as a replica may have it.
    older: PoolCore,
    /// The pool's clock, ahead of ours by so many microseconds.
    ahead: u64,
    born: u64,
    /// The most that there may be.
    most: f64,
    spent: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let now = moment();
        let mut world = Self {
            seed,
            stream: Seed::new(seed).stream(0),
            now,
            start: now,
            processes: Vec::new(),
            pool: PoolCore::default(),
            older: PoolCore::default(),
            ahead: 1_000_000_000,
            born: 0,
            // A pool begins with a second of its floor.
            most: FLOOR,
            spent: 0,
        };
        for _ in 0..PROCESSES {
            let process = world.joins();
            world.processes.push(process);
        }
        world
    }

    fn joins(&mut self) -> Process {
        self.born += 1;
        let client = process(FLOOR, self.seed << 32 | self.born, self.now);
        let (failing, cut_off) = (self.born.is_multiple_of(3), false);
        Process {
            client,
            failing,
            cut_off,
            waiting: vec![],
            message: None,
            reply: None,
            stale: None,
        }
    }

    fn event(&mut self) {
        let one = self.stream.below(PROCESSES as u64) as usize;
        match self.stream.below(1_000) {
            0..300 => self.time_passes(),
            300..500 => self.calls(one),
            500..650 => self.retry_goes_on(one),
            650..790 => self.talks(one),
            790..900 => self.arrives(one),
            900..960 => self.hears(one),
            960..980 => self.hears_again(one),
            980..988 => self.processes[one].cut_off ^= true,
            988..993 => self.processes[one].failing ^= true,
            993..995 => self.older = self.pool.clone(),
            995 => self.processes[one] = self.joins(),
            996 => self.pool_forgets(),
            997 => self.pool_is_put_back(),
            998 => self.clock_jumps(),
            _ => self.leaves(one),
        }
    }

    fn time_passes(&mut self) {
        let dt = self.stream.up_to(ms(60));
        self.now += dt;
        let alone = self.processes.iter().filter(|it| it.client.failures() >= 2);
        let shares: f64 = alone.map(|it| 1.0 / it.client.processes().max(1) as f64).sum();
        let lapse = dt.as_secs_f64();
        self.most = self.most * (-lapse / TAU.as_secs_f64()).exp() + FLOOR * (1.0 + shares) * lapse;
    }

    fn calls(&mut self, one: usize) {
        let (now, failing) = (self.now, self.processes[one].failing);
        let calls = self.stream.below(4) as u32;
        let Process { client, waiting, .. } = &mut self.processes[one];
        if failing {
            for _ in 0..calls {
                client.budget().count_call(now);
                waiting.extend(ask(client.budget(), now).ok().map(|grant| (grant, now)));
            }
        } else {
            let before = client.tokens(now);
            succeed(client.budget(), calls, now);
            let earned = RATIO * f64::from(calls);
            assert!((client.tokens(now) - before - earned).abs() < CLOSE);
            self.most += earned;
        }
    }

    /// A retry that waits asks for its slot, is sent, or is dropped by its caller.
    fn retry_goes_on(&mut self, one: usize) {
        let (now, process) = (self.now, &mut self.processes[one]);
        if process.waiting.is_empty() {
            return;
        }
        let which = self.stream.below(process.waiting.len() as u64) as usize;
        let (mut grant, since) = process.waiting.swap_remove(which);
        let before = process.client.tokens(now);
        let given_up = self.stream.below(8) == 0;
        match grant.slot(now, Duration::MAX) {
            Ok(Duration::ZERO) if !given_up => {
                grant.sent();
                self.spent += 1;
                self.most -= 1.0;
                assert!((process.client.tokens(now) - before).abs() < CLOSE, "it was paid before");
            }
            Ok(_) if !given_up => process.waiting.push((grant, since)),
            _ => {
                drop(grant);
                let back = process.client.tokens(now) - before;
                assert!(back.abs() < CLOSE || (back - 1.0).abs() < CLOSE, "{back}");
                // Reserved tokens do not fade.
                let held = (now - since).as_secs_f64() / TAU.as_secs_f64();
                self.most += back * (1.0 - (-held).exp());
            }
        }
    }

    /// The process sends what is due; a tenth of it never leaves.
    fn talks(&mut self, one: usize) {
        let (now, process) = (self.now, &mut self.processes[one]);
        let before = process.client.tokens(now);
        let Some(message) = process.client.message(now) else { return };
        let on_its_way = message.deposit as f64 / 1e6;
        assert!((before - process.client.tokens(now) - on_its_way).abs() < CLOSE);
        let failure = match self.stream.below(20) {
            0 => StoreFailure::Unsent,
            1 => StoreFailure::Refused,
            _ => {
                process.message = Some((message, now));
                return;
            }
        };
        process.client.failed(message.number, failure, now);
        assert!((before - process.client.tokens(now)).abs() < CLOSE, "all of it came back");
    }

    /// What is on its way reaches the pool, or does not.
    fn arrives(&mut self, one: usize) {
        let process = &mut self.processes[one];
        let Some((message, sent)) = process.message else { return };
        if process.reply.is_some() {
            return;
        }
        if process.cut_off || self.stream.below(20) == 0 {
            return self.is_lost(one);
        }
        let pool_now = self.ahead + (self.now - self.start).as_micros() as u64;
        let mut folded = self.pool.clone();
        let before = folded.exchange(&terms(FLOOR), pool_now, &Message::default()).stock;
        let reply = self.pool.exchange(&terms(FLOOR), pool_now, &message);
        assert_eq!(reply.stock + reply.grant * 1_000_000, before + message.deposit);
        assert!(reply.grant <= message.want);
        if let (Some(pool), 1..) = (self.pool.state(), reply.grant) {
            let pace = pool.rate as f64 * RATIO * 0.75 + FLOOR * 1e6;
            assert!(pool.level as f64 <= pace + 1e6, "no more than a second ahead, and one");
        }
        // What travels does not fade.
        let travelled = (self.now - sent).as_secs_f64() / TAU.as_secs_f64();
        self.most += message.deposit as f64 / 1e6 * (1.0 - (-travelled).exp());
        process.reply = Some(reply);
        if self.stream.below(20) == 0 {
            self.is_lost(one);
        }
    }

    /// Nobody knows what became of the message.
    fn is_lost(&mut self, one: usize) {
        let (now, process) = (self.now, &mut self.processes[one]);
        let (message, reply) = (process.message.take(), process.reply.take());
        let Some((message, _)) = message else { return };
        process.stale = reply.map(|reply| (message.number, reply));
        let before = process.client.tokens(now);
        process.client.failed(message.number, StoreFailure::Unknown, now);
        assert!((process.client.tokens(now) - before).abs() < CLOSE, "nothing comes back");
    }

    fn hears(&mut self, one: usize) {
        let (now, process) = (self.now, &mut self.processes[one]);
        let (Some((message, _)), Some(reply)) = (process.message, process.reply) else { return };
        (process.message, process.reply) = (None, None);
        process.stale = Some((message.number, reply));
        let before = process.client.tokens(now);
        process.client.answered(message.number, &reply, now);
        let got = process.client.tokens(now) - before;
        let reserved = reply.grant as f64 - got;
        assert!(got > -CLOSE && reserved > -CLOSE, "{got} of {}", reply.grant);
        assert!(reserved < process.waiting.len() as f64 + CLOSE, "for those who wait alone");
    }

    fn hears_again(&mut self, one: usize) {
        let (now, process) = (self.now, &mut self.processes[one]);
        let Some((number, reply)) = process.stale else { return };
        let before = process.client.tokens(now);
        process.client.answered(number, &reply, now);
        assert!((process.client.tokens(now) - before).abs() < CLOSE);
    }

    fn pool_forgets(&mut self) {
        self.pool.forget();
        self.most += FLOOR;
    }

    fn pool_is_put_back(&mut self) {
        let held = self.older.state().map_or(FLOOR, |state| state.stock as f64 / 1e6);
        self.pool = self.older.clone();
        self.most += held;
    }

    fn clock_jumps(&mut self) {
        let by = self.stream.up_to(Duration::from_secs(90)).as_micros() as u64;
        if self.stream.below(2) == 0 {
            self.ahead += by;
            // At most the floor of a time constant; a pool that is forgotten begins with a second's.
            self.most += FLOOR * TAU.as_secs_f64() + FLOOR;
        } else {
            self.ahead -= by.min(self.ahead / 2);
        }
    }

    fn leaves(&mut self, one: usize) {
        let now = self.now;
        let process = &mut self.processes[one];
        let before = process.client.tokens(now);
        if let Some(message) = process.client.farewell(now) {
            process.reply = None;
            process.message = Some((message, now));
            assert!((before - message.deposit as f64 / 1e6).abs() < CLOSE, "nothing is kept");
            self.arrives(one);
        }
        self.processes[one] = self.joins();
    }

    fn look(&self, event: u64) {
        let now = self.now;
        let here: f64 = self.processes.iter().map(|it| it.client.tokens(now)).sum();
        let mut pool = self.pool.clone();
        let pool_now = self.ahead + (now - self.start).as_micros() as u64;
        let there = pool.exchange(&terms(FLOOR), pool_now, &Message::default()).stock as f64 / 1e6;
        let (live, most) = (here + there, self.most);
        let told = format!("seed {}, event {event}: {live} of {most}", self.seed);
        assert!(live <= most * 1.005 + 0.05, "{told}");
    }
}

#[test]
fn nothing_is_made_of_nothing_and_the_bound_holds_after_every_event() {
    let mut spent = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for event in 0..EVENTS {
            world.event();
            world.look(event);
        }
        spent += world.spent;
    }
    assert!(spent > SEEDS * EVENTS / 200, "retries were sent: {spent}");
}
