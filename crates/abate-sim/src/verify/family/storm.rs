//! Storms by chance: from a number, what a dependency may be like, and what may happen to it.

use std::fmt;
use std::time::Duration;

use abate_core::policy::Policy;
use abate_core::rng::Seed;

use super::super::parts::{built, ms, one_group, s};
use super::dice::Dice;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Fault, Model, Network, Rate, Server, Trouble};

/// A dependency that is well before its trouble and after it, and those who call it.
#[derive(Debug, Clone)]
pub(super) struct Storm {
    pub(super) seed: u64,
    /// Each with a budget and a breaker of its own.
    pub(super) processes: u32,
    patience: Duration,
    arrivals: Arrivals,
    /// Calls a second when there are most.
    peak: f64,
    network: Network,
    cancels: bool,
    server: Server,
    troubles: Vec<Trouble>,
}

/// A server, and what it is asked for.
struct Place {
    server: Server,
    peak: f64,
    /// The longest that all but one in a few hundred of its answers take.
    slowest: f64,
}

impl Storm {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(Seed::new(seed).stream(0));
        let (patience, network, place) = loop {
            let patience = dice.seconds_over(0.5, 10.0);
            let network = network(&mut dice);
            let place = place(&mut dice);
            let way = 12.0 * network.delay.mean().as_secs_f64();
            let well = place.slowest + way <= patience.as_secs_f64();
            if well && (1.0..=2000.0).contains(&place.peak) {
                break (patience, network, place);
            }
        };
        let troubles = troubles(&mut dice, place.server.workers.is_some());
        let rate = rate(&mut dice, place.peak, &troubles);
        let arrivals =
            if dice.happens(25) { Arrivals::Even(rate) } else { Arrivals::Poisson(rate) };
        Self {
            seed,
            processes: dice.over(1.0, 51.0) as u32,
            patience,
            arrivals,
            peak: place.peak,
            network,
            cancels: dice.happens(50),
            server: place.server,
            troubles,
        }
    }

    /// Whether a process makes, once its trouble is over, at least as many calls as the floor of its
    /// budget pays retries for.
    pub(super) fn outpaces(&self, floor: f64) -> bool {
        let (Arrivals::Poisson(rate) | Arrivals::Even(rate)) = &self.arrivals else { return true };
        rate.at(Duration::MAX) >= floor * f64::from(self.processes)
    }

    /// What happens under `conduct`, up to `more` after the last trouble.
    pub(super) fn model(&self, conduct: Conduct, more: Duration) -> Model {
        let ends = self.troubles.iter().map(|trouble| trouble.to).max().unwrap_or_default();
        let mut group = one_group(self.arrivals.clone(), conduct);
        group.clients = self.processes;
        group.network = self.network;
        group.cancels = self.cancels;
        super::super::parts::model(ends + more, group, self.server.clone(), self.troubles.clone())
    }

    /// How long a caller waits for an answer is the caller's to say; the rest is the default.
    pub(super) fn ours(&self) -> Conduct {
        Conduct::stack(built(Policy::builder().with_attempt_timeout(self.patience)))
    }

    /// The same without a retry, a budget or a breaker.
    pub(super) fn one_try(&self) -> Conduct {
        let one = Policy::builder().with_attempts(1).with_attempt_timeout(self.patience);
        Conduct::plain(built(one))
    }
}

fn network(dice: &mut Dice) -> Network {
    let mean = dice.seconds_over(0.001, 0.025);
    let delay = match dice.below(3) {
        0 => Law::NOTHING,
        1 => Law::Constant(mean),
        _ => Law::Exponential(mean),
    };
    let loss = if dice.happens(20) { dice.between(0.0, 0.01) } else { 0.0 };
    Network { delay, loss }
}

fn place(dice: &mut Dice) -> Place {
    let mean = dice.seconds_over(0.005, 0.5);
    let service = match dice.below(4) {
        0 => Law::Constant(mean),
        1 => Law::Uniform(mean / 2, mean * 3 / 2),
        2 => Law::Normal(mean, mean / 5),
        _ => Law::Exponential(mean),
    };
    let (mut server, mean) = (Server::new(service), mean.as_secs_f64());
    server.failing = dice.happens(50).then_some(Law::Constant(ms(5)));
    if dice.happens(30) {
        server.error_rate = dice.between(0.0, 0.01);
    }
    if dice.happens(25) {
        server.retry_after = Some(s(1 + dice.below(10)));
    }
    if dice.happens(25) {
        let peak = dice.over(1.0, 2000.0);
        let share = if dice.happens(60) { dice.between(0.05, 0.6) } else { 0.0 };
        server.slower_by = Duration::from_secs_f64(share / peak);
        return Place { server, peak, slowest: 6.0 * mean / (1.0 - share) };
    }
    let workers = dice.over(1.0, 401.0).floor();
    let load = dice.between(0.2, 0.9);
    let capacity = workers / mean;
    server.workers = Some(workers as u32);
    if dice.happens(50) {
        // So long that what comes by chance alone does not fill it.
        let queue = (dice.over(0.2, 20.0) * capacity).max(6.0 / (1.0 - load));
        server.queue = Some(queue as u32);
    }
    server.drops_expired = dice.happens(25);
    server.last_first = dice.happens(10);
    // Of those that wait at all, e⁻⁵ wait longer.
    let wait = 5.0 * mean / (workers * (1.0 - load));
    Place { server, peak: load * capacity, slowest: 6.0 * mean + wait }
}

/// One, or two after each other.
fn troubles(dice: &mut Dice, has_workers: bool) -> Vec<Trouble> {
    let mut troubles = Vec::new();
    let mut from = s(20) + dice.seconds_over(1.0, 20.0);
    for _ in 0..if dice.happens(30) { 2 } else { 1 } {
        let what = match dice.below(if has_workers { 6 } else { 5 }) {
            0 => Fault::Down { status: if dice.happens(50) { 503 } else { 500 } },
            1 => Fault::BlackHole,
            2 => Fault::Hold,
            3 => Fault::Slow(dice.over(1.5, 40.0)),
            4 => Fault::Errors(dice.between(0.1, 1.0)),
            _ => Fault::Capacity(dice.between(0.0, 0.8)),
        };
        let to = from + dice.seconds_over(1.0, 60.0);
        troubles.push(Trouble { server: 0, from, to, what });
        from = to + dice.seconds_over(0.1, 30.0);
    }
    troubles
}

/// Level, or with a step near the first trouble.
fn rate(dice: &mut Dice, peak: f64, troubles: &[Trouble]) -> Rate {
    let (Some(first), true) = (troubles.first(), dice.happens(30)) else {
        return Rate::constant(peak);
    };
    let near = s(10).as_secs_f64();
    let (from, to) = (first.from.as_secs_f64() - near, first.to.as_secs_f64() + near);
    let at = Duration::from_secs_f64(dice.between(from, to));
    let low = peak * dice.between(0.2, 0.9);
    let (before, after) = if dice.happens(50) { (low, peak) } else { (peak, low) };
    Rate::through(vec![(at, before), (at, after)])
}

/// In one line, so that a storm that breaks a rule can be understood without a debugger.
impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, processes, peak, patience, server, network, .. } = self;
        let how = if let Arrivals::Even(_) = self.arrivals { "even" } else { "at random" };
        write!(f, "storm {seed}: {peak:.1}/s {how} from {processes} processes, ")?;
        if let Arrivals::Poisson(rate) | Arrivals::Even(rate) = &self.arrivals {
            write!(f, "{:.1} → {:.1}, ", rate.at(Duration::ZERO), rate.at(Duration::MAX))?;
        }
        write!(f, "timeout {patience:?}, cancels {}, {network:?}; ", self.cancels)?;
        if let Some(capacity) = server.capacity() {
            write!(f, "load {:.2}, ", peak / capacity)?;
        }
        write!(f, "{server:?}; ")?;
        for Trouble { from, to, what, .. } in &self.troubles {
            write!(f, "{what} {from:?}..{to:?}, ")?;
        }
        Ok(())
    }
}
