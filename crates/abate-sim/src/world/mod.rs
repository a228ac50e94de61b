//! A world in which calls are made: events in, happenings out.

mod arrivals;
mod calls;
mod client;
mod process;
mod server;
mod tally;

use std::time::{Duration, Instant};

use abate_core::rng::Seed;

use self::arrivals::Source;
use self::calls::Calls;
use self::process::Process;
use self::server::Dependency;
use self::tally::Tally;
use crate::law::nanos;
use crate::model::Model;
use crate::queue::{Event, Kind, Queue};
use crate::record::{self, Run};
use crate::trace::{Happening, Trace, What};

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

/// The seed from which process number `process` of all draws, as one that is given to its layers.
#[must_use]
pub fn seed_of_process(seed: u64, process: u32) -> u64 {
    const PROCESSES: u64 = 1 << 32;
    Seed::new(seed).part(PROCESSES).stream(process.into()).bits() as u64
}

/// All there is.
struct World<'a> {
    model: &'a Model,
    seed_given: u64,
    seed: Seed,
    /// The moment at which virtual time is 0.
    base: Instant,
    now: u64,
    end: u64,
    /// What the ends of waits are rounded up to.
    tick: u64,
    events: u64,
    queue: Queue,
    calls: Calls,
    /// Where the calls of each group come from.
    sources: Vec<Source>,
    processes: Vec<Process>,
    servers: Vec<Dependency>,
    tally: Tally,
    trace: Trace,
    on_step: Option<&'a mut dyn FnMut(Duration)>,
}

impl<'a> World<'a> {
    fn new(model: &'a Model, seed: u64, traced: bool) -> Self {
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
            end: nanos(model.length),
            tick: 1,
            events: 0,
            queue: Queue::new(),
            calls: Calls::default(),
            sources,
            processes,
            servers: model.servers.iter().map(Dependency::new).collect(),
            tally: Tally::new(model.step, model.keeps_times),
            trace: Trace::new(traced),
            on_step: None,
        }
    }

    fn run(mut self) -> (Run, Vec<Happening>) {
        self.plan_troubles();
        self.plan_arrivals();
        while let Some(event) = self.queue.pop() {
            if event.at() >= self.end {
                break;
            }
            self.now = event.at();
            while self.tally.is_over(self.now) {
                self.end_bin();
            }
            self.events += 1;
            if self.events.is_multiple_of(Queue::SOON as u64) {
                self.calls.touch(self.queue.soon().iter().map(|event| event.id()));
            }
            self.handle(event);
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

    /// Plans the end of a wait.
    #[inline]
    fn plan(&mut self, at: u64, kind: Kind, id: u32, tag: u32) {
        let at = match self.tick {
            1 => at,
            tick => at.checked_next_multiple_of(tick).unwrap_or(u64::MAX),
        };
        self.queue.push(Event::new(at, kind, id, tag));
    }

    /// The present moment, for the decisions.
    #[inline]
    fn instant(&self) -> Instant {
        self.base + Duration::from_nanos(self.now)
    }

    /// A moment of theirs in virtual time.
    #[inline]
    fn moment(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.base))
    }

    #[inline]
    fn note(&mut self, call: u32, attempt: u32, what: What) {
        self.trace.note(Happening { at: self.now, call, attempt, what });
    }
}
