//! From event to event.

use std::time::Duration;

use super::dependency::Dependency;
use super::state::World;
use crate::law::nanos;
use crate::model::Model;
use crate::queue::{Event, Kind};
use crate::record::{self, Run};
use crate::trace::Happening;

/// Runs `model` from `seed`. The same model and seed come to the same [`Run`], on every machine.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use abate_core::policy::Policy;
/// use abate_sim::law::Law;
/// use abate_sim::model::{Arrivals, Conduct, Group, Model, Network, Rate, Server};
///
/// let model = Model {
///     length: Duration::from_secs(10),
///     step: Duration::from_secs(1),
///     groups: vec![Group {
///         clients: 1,
///         clients_per_process: 1,
///         arrivals: Arrivals::Poisson(Rate::constant(100.0)),
///         conduct: Conduct::stack(Policy::default()),
///         server: 0,
///         network: Network::INSTANT,
///         onward: None,
///         counts: true,
///         cancels: false,
///     }],
///     servers: vec![Server::new(Law::Exponential(Duration::from_millis(10)))],
///     troubles: vec![],
///     watched: 0,
///     keeps_times: false,
/// };
/// let run = abate_sim::run(&model, 1);
/// assert_eq!(run.success(), 1.0);
/// assert_eq!(run.trace, abate_sim::run(&model, 1).trace);
/// ```
#[must_use]
pub fn run(model: &Model, seed: u64) -> Run {
    World::new(model, seed, false).run().0
}

/// The same, and calls `on_step` with the moment that each stretch of time ends at: for whoever waits.
#[must_use]
pub fn run_watched(model: &Model, seed: u64, on_step: &mut dyn FnMut(Duration)) -> Run {
    World { on_step: Some(on_step), ..World::new(model, seed, false) }.run().0
}

/// The same, with all that happened to each call.
#[must_use]
pub fn run_traced(model: &Model, seed: u64) -> (Run, Vec<Happening>) {
    World::new(model, seed, true).run()
}

/// The same where whatever is waited for ends with a whole `tick` from the start, as it does with
/// tokio's timers and their ticks of a millisecond: attempts, pauses, work and ways. Calls begin when
/// they begin.
#[must_use]
pub fn run_in_ticks(model: &Model, seed: u64, tick: Duration) -> (Run, Vec<Happening>) {
    World { tick: nanos(tick).max(1), ..World::new(model, seed, true) }.run()
}

impl World<'_> {
    fn run(mut self) -> (Run, Vec<Happening>) {
        self.plan_troubles();
        self.plan_arrivals();
        while let Some(event) = self.queue.pop() {
            if event.at() >= self.end {
                break;
            }
            self.go_to(event.at());
            while self.tally.is_over(self.now) {
                self.end_bin();
            }
            self.events += 1;
            self.handle(event);
            self.calls.touch(self.queue.soon().iter().map(|event| event.id()));
        }
        // A world in which nothing is left to happen ends before its time.
        let rests = self.now < self.end && self.queue.pop().is_none();
        while self.tally.is_over(if rests { self.now } else { self.end }) {
            self.end_bin();
        }
        if rests || !self.end.is_multiple_of(nanos(self.model.step).max(1)) {
            self.end_bin();
        }
        let troubles = self.model.troubles.iter();
        let faults = troubles.map(|trouble| record::Trouble {
            from: trouble.from,
            to: trouble.to,
            what: trouble.what.to_string(),
        });
        let run = Run {
            seed: self.seed_given,
            faults: faults.collect(),
            budget_ratio: self.model.budget_ratio(),
            events: self.events,
            trace: self.trace.hash(),
            ..self.tally.into_run()
        };
        (run, self.trace.into_kept())
    }

    fn handle(&mut self, event: Event) {
        let (id, tag) = (event.id(), event.tag());
        match event.kind() {
            Kind::Trouble => self.on_trouble(id),
            Kind::Served => self.on_served(id, tag),
            Kind::Answer => self.on_answer(id, tag),
            Kind::Next | Kind::Timer => self.on_timer(id, tag),
            Kind::Begin => self.on_begin(id, tag),
            Kind::Arrival => self.on_arrival(id, tag),
        }
        self.calls.forget();
    }

    fn end_bin(&mut self) {
        let open = self.processes.iter().filter(|process| process.guard.is_open()).count();
        let capacity = self.servers.get(self.model.watched).and_then(Dependency::capacity);
        self.tally.next(u32::try_from(open).unwrap_or(u32::MAX), capacity);
        if let Some(on_step) = &mut self.on_step {
            on_step(Duration::from_nanos(self.now));
        }
        // What the next stretch begins with.
        self.tally.bin.in_use = self.tally.in_use;
        self.note_levels(self.model.watched);
    }
}
