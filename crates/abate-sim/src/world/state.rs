//! All there is, and what every part of it does.

use std::time::{Duration, Instant};

use abate_core::rng::Seed;

use super::calls::Calls;
use super::dependency::Dependency;
use super::process::Process;
use super::source::Source;
use super::tally::Tally;
use crate::law::nanos;
use crate::model::Model;
use crate::queue::{Event, Kind, Queue};
use crate::trace::{Happening, Trace, What};

/// All there is.
pub(super) struct World<'a> {
    pub(super) model: &'a Model,
    pub(super) seed_given: u64,
    pub(super) seed: Seed,
    /// The moment at which virtual time is 0.
    pub(super) base: Instant,
    pub(super) now: u64,
    /// The same for the decisions.
    pub(super) instant: Instant,
    pub(super) end: u64,
    /// What the ends of waits are rounded up to.
    pub(super) tick: u64,
    pub(super) events: u64,
    pub(super) queue: Queue,
    pub(super) calls: Calls,
    /// Where the calls of each group come from.
    pub(super) sources: Vec<Source>,
    pub(super) processes: Vec<Process>,
    pub(super) servers: Vec<Dependency>,
    pub(super) tally: Tally,
    pub(super) trace: Trace,
    pub(super) on_step: Option<&'a mut dyn FnMut(Duration)>,
}

impl<'a> World<'a> {
    pub(super) fn new(model: &'a Model, seed: u64, traced: bool) -> Self {
        #[expect(clippy::disallowed_methods, reason = "any moment to count virtual time from")]
        let base = Instant::now();
        let mut processes = Vec::new();
        let mut sources = Vec::new();
        let mut clients = 0;
        for group in &model.groups {
            let first_process = u32::try_from(processes.len()).unwrap_or(u32::MAX);
            let count = group.clients.div_ceil(group.clients_per_process.max(1));
            for process in (0..count).map(|number| first_process + number) {
                let seed = Seed::new(seed_of_process(seed, process));
                processes.push(Process::new(&group.conduct, seed, base));
            }
            sources.push(Source::new(clients, first_process));
            clients += group.clients;
        }
        Self {
            model,
            seed_given: seed,
            seed: Seed::new(seed),
            base,
            now: 0,
            instant: base,
            end: nanos(model.length),
            tick: 1,
            events: 0,
            queue: Queue::new(),
            calls: Calls::with_room(model.at_once()),
            sources,
            processes,
            servers: model.servers.iter().map(Dependency::new).collect(),
            tally: Tally::new(model.step, model.keeps_times),
            trace: Trace::new(traced),
            on_step: None,
        }
    }

    /// Plans the end of a wait.
    #[inline]
    pub(super) fn plan(&mut self, at: u64, kind: Kind, id: u32, tag: u32) {
        let at = match self.tick {
            1 => at,
            tick => at.checked_next_multiple_of(tick).unwrap_or(u64::MAX),
        };
        self.queue.push(Event::new(at, kind, id, tag));
    }

    /// Goes on to the moment `now`.
    #[inline]
    pub(super) fn go_to(&mut self, now: u64) {
        self.now = now;
        self.instant = self.base + Duration::from_nanos(now);
    }

    /// A moment of theirs in virtual time.
    #[inline]
    pub(super) fn moment(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.base))
    }

    #[inline]
    pub(super) fn note(&mut self, call: u32, attempt: u32, what: What) {
        self.trace.note(Happening { at: self.now, call, attempt, what });
    }
}

/// The seed from which process number `process` of all draws, as one that is given to its layers.
#[must_use]
pub fn seed_of_process(seed: u64, process: u32) -> u64 {
    const PROCESSES: u64 = 1 << 32;
    Seed::new(seed).part(PROCESSES).stream(process.into()).bits() as u64
}
