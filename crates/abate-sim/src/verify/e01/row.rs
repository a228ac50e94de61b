//! Clients that all want to write one row once, each by the version that it has read.

use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::rng::{Seed, Stream};

use crate::law::{Draws, Law, Purpose, nanos};
use crate::queue::{Event, Kind, Queue};

/// A way between a client and the row, in one direction.
const HOP: Law = Law::Normal(Duration::from_millis(10), Duration::from_millis(2));

/// What a request or an answer is about, in the tag of its event.
const READ: u32 = 0;
const WRITE: u32 = 1;
const STALE: u32 = 2;

/// Waits, and what they are cut to once they are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub(super) backoff: Backoff,
    pub(super) cut: Duration,
}

/// What a contest came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    /// When the last client knew that it had written, in milliseconds.
    pub(super) took: f64,
    /// The writes that were tried.
    pub(super) writes: f64,
}

/// All clients begin at once; it ends when each has written.
pub(super) fn contest(clients: u32, waits: Waits, seed: u64) -> Outcome {
    Contest::new(clients, waits, Seed::new(seed)).run()
}

struct Contest {
    waits: Waits,
    clients: Vec<Client>,
    version: u32,
    writes: u32,
    queue: Queue,
    hops: Draws,
    now: u64,
}

struct Client {
    /// The version that it has read, or that is on its way to it.
    version: u32,
    failures: u32,
    wait: Duration,
    rng: Stream,
}

impl Contest {
    fn new(clients: u32, waits: Waits, seed: Seed) -> Self {
        let client = |number| Client {
            version: 0,
            failures: 0,
            wait: Duration::ZERO,
            rng: seed.stream(u64::from(number)),
        };
        Self {
            waits,
            clients: (0..clients).map(client).collect(),
            version: 0,
            writes: 0,
            queue: Queue::new(),
            hops: Draws::new(seed, Purpose::Outward, 0),
            now: 0,
        }
    }

    fn run(&mut self) -> Outcome {
        for client in (0..).take(self.clients.len()) {
            self.hop(Kind::Arrival, client, READ);
        }
        while let Some(event) = self.queue.pop() {
            self.now = event.at();
            let (client, tag) = (event.id(), event.tag());
            match (event.kind(), tag) {
                (Kind::Arrival, READ) => self.read(client),
                (Kind::Arrival, _) => self.write(client),
                (Kind::Answer, READ) => self.hop(Kind::Arrival, client, WRITE),
                (Kind::Answer, STALE) => self.back_off(client),
                (Kind::Timer, _) => self.hop(Kind::Arrival, client, READ),
                _ => {} // It has written.
            }
        }
        Outcome { took: self.now as f64 / 1e6, writes: self.writes.into() }
    }

    /// Something sets out to the row, or from it.
    fn hop(&mut self, kind: Kind, client: u32, tag: u32) {
        let at = self.now + HOP.draw(&mut self.hops);
        self.queue.push(Event::new(at, kind, client, tag));
    }

    fn read(&mut self, client: u32) {
        self.clients[client as usize].version = self.version;
        self.hop(Kind::Answer, client, READ);
    }

    fn write(&mut self, client: u32) {
        self.writes += 1;
        let fresh = self.clients[client as usize].version == self.version;
        self.version += u32::from(fresh);
        self.hop(Kind::Answer, client, if fresh { WRITE } else { STALE });
    }

    fn back_off(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        client.failures += 1;
        let Waits { backoff, cut } = self.waits;
        let (wait, _) = backoff.delay(client.failures, client.wait, None, &mut client.rng);
        client.wait = wait.min(cut);
        let at = self.now + nanos(client.wait);
        self.queue.push(Event::new(at, Kind::Timer, number, READ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Waits = Waits { backoff: Backoff::NONE, cut: Duration::MAX };

    #[test]
    fn one_client_writes_once_in_four_hops() {
        let outcome = contest(1, NO_WAIT, 3);
        assert_eq!(outcome.writes, 1.0);
        assert!((20.0..60.0).contains(&outcome.took), "{outcome:?}");
    }

    #[test]
    fn each_client_writes_and_a_stale_write_changes_nothing() {
        let mut contest = Contest::new(20, NO_WAIT, Seed::new(1));
        let outcome = contest.run();
        assert_eq!(contest.version, 20);
        let failures: u32 = contest.clients.iter().map(|client| client.failures).sum();
        assert!(failures > 20, "{failures}");
        assert_eq!(outcome.writes, f64::from(20 + failures));
    }

    #[test]
    fn a_wait_is_cut_after_it_is_drawn() {
        let backoff = Backoff { base: Duration::from_secs(1), cap: Duration::MAX, ..Backoff::NONE };
        let cut = Duration::from_millis(1);
        let (cut, whole) = (Waits { backoff, cut }, Waits { backoff, cut: Duration::MAX });
        assert!(contest(5, cut, 1).took < 500.0);
        assert!(contest(5, whole, 1).took > 1000.0);
    }
}
