//! The events to come, in order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The bits of a moment that tell the moments of one slot apart: a slot is 16.8 ms long.
const SLOT_BITS: u32 = 24;

/// The slots that are at hand: 69 seconds.
const SLOTS: u64 = 4096;

const TAG_BITS: u32 = 28;
const KIND_SHIFT: u32 = TAG_BITS + 32;
const AT_SHIFT: u32 = 64;

/// What will happen when, to whom; one number, so that order is one comparison: by time, then kind,
/// then call, then attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u128);

/// In the order in which they happen at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Trouble begins or ends.
    Trouble,
    /// A server is done with a request.
    Served,
    /// An answer is back at its caller.
    Answer,
    /// A caller's timer ends.
    Timer,
    /// A call begins.
    Begin,
    /// A request reaches its server.
    Arrival,
}

impl Event {
    /// The largest tag; larger ones begin again at 0.
    pub(crate) const TAGS: u32 = 1 << TAG_BITS;

    pub(crate) const fn new(at: u64, kind: Kind, id: u32, tag: u32) -> Self {
        let low = (kind as u128) << KIND_SHIFT | (id as u128) << TAG_BITS;
        Self((at as u128) << AT_SHIFT | low | (tag % Self::TAGS) as u128)
    }

    pub(crate) const fn at(self) -> u64 {
        (self.0 >> AT_SHIFT) as u64
    }

    pub(crate) const fn kind(self) -> Kind {
        match (self.0 >> KIND_SHIFT) as u8 & 0xf {
            0 => Kind::Trouble,
            1 => Kind::Served,
            2 => Kind::Answer,
            3 => Kind::Timer,
            4 => Kind::Begin,
            _ => Kind::Arrival,
        }
    }

    pub(crate) const fn id(self) -> u32 {
        (self.0 >> TAG_BITS) as u32
    }

    pub(crate) const fn tag(self) -> u32 {
        self.0 as u32 % Self::TAGS
    }

    const fn slot(self) -> u64 {
        self.at() >> SLOT_BITS
    }
}

/// A queue in which what is far away lies unsorted, so that a million events to come cost no more
/// than a thousand.
pub(crate) struct Queue {
    /// The slot whose events are being handed out.
    slot: u64,
    /// Its events, the next one last.
    sorted: Vec<Event>,
    /// Those that were added to it since it was sorted.
    added: BinaryHeap<Reverse<Event>>,
    /// The slots after it, each at its number modulo their count.
    ring: Vec<Vec<Event>>,
    in_ring: usize,
    /// Beyond the ring.
    far: BTreeMap<u64, Vec<Event>>,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            slot: 0,
            sorted: Vec::new(),
            added: BinaryHeap::new(),
            ring: (0..SLOTS).map(|_| Vec::new()).collect(),
            in_ring: 0,
            far: BTreeMap::new(),
        }
    }

    /// Adds an event; one before the last that was handed out comes next.
    pub(crate) fn push(&mut self, event: Event) {
        let slot = event.slot();
        if slot <= self.slot {
            self.added.push(Reverse(event));
        } else if slot - self.slot < SLOTS {
            self.ring[Self::place(slot)].push(event);
            self.in_ring += 1;
        } else {
            self.far.entry(slot).or_default().push(event);
        }
    }

    /// The next event.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        loop {
            let added = self.added.peek().map(|Reverse(event)| *event);
            match (self.sorted.last(), added) {
                (Some(sorted), Some(added)) if added < *sorted => return self.pop_added(),
                (Some(_), _) => return self.sorted.pop(),
                (None, Some(_)) => return self.pop_added(),
                (None, None) => self.advance()?,
            }
        }
    }

    fn pop_added(&mut self) -> Option<Event> {
        self.added.pop().map(|Reverse(event)| event)
    }

    /// Goes on to the next slot that has events.
    fn advance(&mut self) -> Option<()> {
        let far = self.far.first_key_value().map(|(slot, _)| *slot);
        self.slot = match (self.in_ring, far) {
            (0, None) => return None,
            (0, Some(far)) => far,
            (_, far) => {
                let mut next = self.slot + 1;
                while self.ring[Self::place(next)].is_empty() {
                    next += 1;
                }
                // Never later than the ring's: what is far is moved into it in time.
                far.map_or(next, |far| far.min(next))
            }
        };
        std::mem::swap(&mut self.sorted, &mut self.ring[Self::place(self.slot)]);
        self.in_ring -= self.sorted.len();
        while let Some(entry) = self.far.first_entry()
            && *entry.key() < self.slot + SLOTS
        {
            let (slot, mut events) = entry.remove_entry();
            if slot == self.slot {
                self.sorted.append(&mut events);
            } else {
                self.in_ring += events.len();
                self.ring[Self::place(slot)].append(&mut events);
            }
        }
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        Some(())
    }

    const fn place(slot: u64) -> usize {
        (slot % SLOTS) as usize
    }
}

#[cfg(test)]
mod tests {
    use abate_core::rng::Seed;

    use super::*;

    #[test]
    fn an_event_gives_back_what_it_was_made_of() {
        let event = Event::new(u64::MAX, Kind::Arrival, u32::MAX, Event::TAGS - 1);
        assert_eq!(event.at(), u64::MAX);
        assert_eq!(event.kind(), Kind::Arrival);
        assert_eq!(event.id(), u32::MAX);
        assert_eq!(event.tag(), Event::TAGS - 1);
    }

    #[test]
    fn events_come_in_order_whatever_their_distance() {
        let mut stream = Seed::new(7).stream(0);
        let mut queue = Queue::new();
        let mut now = 0;
        let mut waiting = 0;
        let mut last = Event::new(0, Kind::Trouble, 0, 0);
        for n in 0..20_000 {
            for _ in 0..stream.below(3) {
                // From the same moment to some hours away.
                let reach = 1_u64 << stream.below(44);
                let at = now + stream.below(reach);
                queue.push(Event::new(at, Kind::Timer, n, 0));
                waiting += 1;
            }
            if let Some(event) = queue.pop() {
                assert!(event.at() >= last.at(), "{} after {}", event.at(), last.at());
                assert!(event > last || event.at() == now);
                last = event;
                now = event.at();
                waiting -= 1;
            }
        }
        while queue.pop().is_some() {
            waiting -= 1;
        }
        assert_eq!(waiting, 0);
    }

    #[test]
    fn at_one_moment_the_kind_decides_then_the_call() {
        let mut queue = Queue::new();
        queue.push(Event::new(5, Kind::Begin, 1, 0));
        queue.push(Event::new(5, Kind::Served, 9, 0));
        queue.push(Event::new(5, Kind::Served, 2, 0));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(Event::id).collect();
        assert_eq!(order, [2, 9, 1]);
    }
}
