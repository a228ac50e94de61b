//! What the clients of one process share.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use abate_core::rng::{Seed, Streams};

use crate::guard::Guard;
use crate::model::Conduct;
use crate::payer::Payer;

#[derive(Debug)]
pub(super) struct Process {
    pub(super) payer: Payer,
    pub(super) guard: Guard,
    pub(super) limit: Option<Limit>,
    /// What the waits before retries are drawn from.
    pub(super) streams: Streams,
}

/// A concurrency limit, first come, first served.
#[derive(Debug)]
pub(super) struct Limit {
    pub(super) wait: Duration,
    most: u32,
    in_use: u32,
    /// Calls and the tags of the timers with which they wait.
    waiting: VecDeque<(u32, u32)>,
}

impl Process {
    pub(super) fn new(conduct: &Conduct, seed: Seed, start: Instant) -> Self {
        let policy = &conduct.policy;
        let limit = policy.concurrency().map(|most| Limit {
            wait: policy.concurrency_wait(),
            most,
            in_use: 0,
            waiting: VecDeque::new(),
        });
        Self {
            payer: Payer::new(conduct.payment, policy, start),
            guard: Guard::new(conduct.breaker, policy, seed, start),
            limit,
            streams: Streams::new(seed),
        }
    }
}

impl Limit {
    /// Takes a place if there is one.
    pub(super) fn try_acquire(&mut self) -> bool {
        let free = self.in_use < self.most;
        if free {
            self.in_use += 1;
        }
        free
    }

    pub(super) fn wait(&mut self, call: u32, tag: u32) {
        self.waiting.push_back((call, tag));
    }

    /// Those that are to be asked, from the first, whether they still wait.
    pub(super) fn first_waiting(&mut self) -> Option<(u32, u32)> {
        self.waiting.pop_front()
    }

    /// Gives a place back that nobody waits for.
    pub(super) fn release(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }
}
