//! A server as it is at the moment.

use std::collections::VecDeque;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};

use crate::model::{Fault, Server};

/// A server, and how it fares.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) rules: Server,
    /// What answers say that are well, and those that are not.
    pub(super) headers: [HeaderMap; 2],
    /// Requests by call and attempt.
    pub(super) queue: VecDeque<(u32, u32)>,
    /// Of which somebody waits for the answer.
    pub(super) queued: u32,
    /// Requests that are held up on their way.
    pub(super) held: Vec<(u32, u32)>,
    pub(super) busy: u32,
    pub(super) now: Now,
    /// Until when it is down, having fallen over.
    pub(super) fallen_until: u64,
}

/// What of its trouble is going on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) down: Option<u16>,
    pub(super) black_hole: bool,
    pub(super) hold: bool,
    pub(super) slow: f64,
    pub(super) capacity: f64,
    pub(super) errors: f64,
}

impl Now {
    pub(super) const WELL: Self =
        Self { down: None, black_hole: false, hold: false, slow: 1.0, capacity: 1.0, errors: 0.0 };

    pub(super) fn with(mut self, fault: Fault) -> Self {
        match fault {
            Fault::Down { status } => self.down = Some(status),
            Fault::BlackHole => self.black_hole = true,
            Fault::Hold => self.hold = true,
            Fault::Slow(times) => self.slow *= times,
            Fault::Capacity(share) => self.capacity *= share,
            Fault::Errors(share) => self.errors = self.errors.max(share),
        }
        self
    }
}

impl Dependency {
    pub(super) fn new(rules: &Server) -> Self {
        let mut headers = HeaderMap::new();
        if let Some(after) = rules.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        Self {
            rules: rules.clone(),
            headers: [HeaderMap::new(), headers],
            queue: VecDeque::new(),
            queued: 0,
            held: Vec::new(),
            busy: 0,
            now: Now::WELL,
            fallen_until: 0,
        }
    }

    /// What it can answer per second as it fares.
    pub(super) fn capacity(&self) -> Option<f64> {
        let up = if self.now.down.is_some() || self.now.black_hole || self.now.hold {
            0.0
        } else {
            self.now.capacity / self.now.slow
        };
        self.rules.capacity().map(|capacity| capacity * up)
    }

    pub(super) fn has_worker(&self) -> bool {
        match self.rules.workers {
            Some(workers) => f64::from(self.busy) + 1.0 <= f64::from(workers) * self.now.capacity,
            None => true,
        }
    }
}
