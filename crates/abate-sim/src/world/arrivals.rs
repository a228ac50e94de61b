//! When calls begin.

use std::time::Duration;

use super::state::World;
use crate::law::{Draws, Purpose, nanos};
use crate::model::{Arrivals, Rate};
use crate::queue::{Event, Kind};

/// A call begins on its own, of a client of this group.
const OF_GROUP: u32 = 0;
/// It is this client's next.
const OF_CLIENT: u32 = 1;

impl World<'_> {
    pub(super) fn plan_arrivals(&mut self) {
        for (number, group) in self.model.groups.iter().enumerate() {
            let clients =
                (0..group.clients).map(|client| self.sources[number].first_client + client);
            match &group.arrivals {
                Arrivals::Poisson(_) | Arrivals::Even(_) | Arrivals::Trace(_) => {
                    self.plan_next(number, 0);
                }
                Arrivals::Serial { .. } | Arrivals::Paced { .. } => {
                    clients.for_each(|client| {
                        self.queue.push(Event::new(0, Kind::Begin, client, OF_CLIENT))
                    });
                }
                Arrivals::Batch { at } => {
                    let at = nanos(*at);
                    clients.for_each(|client| {
                        self.queue.push(Event::new(at, Kind::Begin, client, OF_CLIENT))
                    });
                }
                Arrivals::Never => {}
            }
        }
    }

    pub(super) fn on_begin(&mut self, id: u32, tag: u32) {
        if tag == OF_CLIENT {
            let group = self.group_of(id);
            let client = id - self.sources[group].first_client;
            self.begin(group, client, None);
        } else {
            let group = id as usize;
            let client = self.next_client(group);
            self.plan_next(group, self.now);
            self.begin(group, client, None);
        }
    }

    /// A client's call, begun at `began`, has ended: its next, if it makes one after the other.
    pub(super) fn plan_after(&mut self, group: usize, client: u32, began: u64) {
        let (wait, since) = match &self.model.groups[group].arrivals {
            Arrivals::Serial { think } => (think, self.now),
            Arrivals::Paced { every } => (every, began),
            _ => return,
        };
        let source = &mut self.sources[group];
        source.begun += 1;
        let client = source.first_client + client;
        let mut draws = Draws::new(self.seed.part(u64::from(client)), Purpose::Think, self.now);
        let at = since.saturating_add(wait.draw(&mut draws)).max(self.now);
        self.queue.push(Event::new(at, Kind::Begin, client, OF_CLIENT));
    }

    /// The client that makes the next call of a group.
    fn next_client(&mut self, number: usize) -> u32 {
        let source = &mut self.sources[number];
        let group = &self.model.groups[number];
        let traced = match &group.arrivals {
            Arrivals::Trace(calls) => calls.get(source.begun as usize).map(|(_, client)| *client),
            _ => None,
        };
        source.begun += 1;
        match (traced, group.clients) {
            (Some(client), _) => client,
            (None, 0 | 1) => 0,
            (None, clients) => {
                let seed = self.seed.part(number as u64);
                Draws::new(seed, Purpose::Client, source.begun).below(clients)
            }
        }
    }

    /// The process of a client of a group.
    pub(super) fn process_of(&self, group: usize, client: u32) -> u32 {
        let per_process = self.model.groups[group].clients_per_process.max(1);
        self.sources[group].first_process + client / per_process
    }

    fn group_of(&self, client: u32) -> usize {
        self.sources.partition_point(|source| source.first_client <= client).saturating_sub(1)
    }

    fn plan_next(&mut self, group: usize, now: u64) {
        let seed = self.seed.part(group as u64);
        let mut draws = Draws::new(seed, Purpose::Arrivals, self.sources[group].begun);
        let next = match &self.model.groups[group].arrivals {
            Arrivals::Poisson(rate) => next_at_random(rate, now, self.end, &mut draws),
            Arrivals::Even(rate) => next_in_step(rate, now),
            Arrivals::Trace(calls) => {
                let next = calls.get(self.sources[group].begun as usize);
                next.map(|(at, _)| nanos(*at).max(now))
            }
            _ => None,
        };
        if let (Some(at), Ok(group)) = (next, u32::try_from(group)) {
            self.queue.push(Event::new(at, Kind::Begin, group, OF_GROUP));
        }
    }
}

/// By thinning (Lewis and Shedler, 1979): arrivals at the peak rate, of which as many are kept as the
/// rate of the moment says.
fn next_at_random(rate: &Rate, now: u64, end: u64, draws: &mut Draws) -> Option<u64> {
    let peak = rate.peak();
    if peak <= 0.0 {
        return None;
    }
    let mut at = now as f64;
    while at < end as f64 {
        at -= libm::log(draws.unit()) / peak * 1e9;
        let here = rate.at(Duration::from_nanos(at as u64));
        if here >= peak || draws.unit() * peak <= here {
            return Some(at as u64);
        }
    }
    None
}

fn next_in_step(rate: &Rate, now: u64) -> Option<u64> {
    let here = rate.at(Duration::from_nanos(now));
    if here > 0.0 {
        return Some(now.saturating_add((1e9 / here) as u64));
    }
    rate.resumes(Duration::from_nanos(now)).map(nanos).filter(|at| *at > now)
}

#[cfg(test)]
mod tests {
    use abate_core::policy::Policy;

    use super::*;
    use crate::law::Law;
    use crate::model::{Conduct, Group, Model, Network, Server};

    /// How many calls begin within ten seconds if each takes `call`, and there is to be one in `every`.
    fn calls(call: u64, every: u64) -> u64 {
        let every = Law::Constant(Duration::from_millis(every));
        let group = Group {
            clients: 1,
            clients_per_process: 1,
            arrivals: Arrivals::Paced { every },
            conduct: Conduct::plain(Policy::default()),
            server: 0,
            network: Network::INSTANT,
            onward: None,
            counts: true,
            cancels: false,
        };
        let model = Model {
            length: Duration::from_secs(10),
            step: Duration::from_secs(1),
            groups: vec![group],
            servers: vec![Server::new(Law::Constant(Duration::from_millis(call)))],
            troubles: vec![],
            watched: 0,
            keeps_times: false,
        };
        crate::run(&model, 1).calls
    }

    #[test]
    fn a_paced_client_calls_in_its_pace_and_one_after_the_other() {
        assert_eq!(calls(30, 100), 100);
        assert_eq!(calls(250, 100), 40);
    }
}
