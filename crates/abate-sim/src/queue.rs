//! The events to come, in order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The bits of a moment that tell the moments of one slot apart: a slot is 16.8 ms long.
const SLOT_BITS: u32 = 24;

/// The bits that tell the slots of a block apart, and the blocks of an age: a block is 69 seconds
/// long, an age 78 hours.
const WHEEL_BITS: u32 = 12;

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
    /// What is under way goes on: nothing else comes between.
    Next,
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
            0 => Kind::Next,
            1 => Kind::Trouble,
            2 => Kind::Served,
            3 => Kind::Answer,
            4 => Kind::Timer,
            5 => Kind::Begin,
            _ => Kind::Arrival,
        }
    }

    pub(crate) const fn id(self) -> u32 {
        (self.0 >> TAG_BITS) as u32
    }

    pub(crate) const fn tag(self) -> u32 {
        self.0 as u32 % Self::TAGS
    }

    /// From 1: slot 0 is before all time, so that what happens first is sorted like everything else.
    const fn slot(self) -> u64 {
        (self.at() >> SLOT_BITS) + 1
    }

    const fn block(self) -> u64 {
        self.slot() >> WHEEL_BITS
    }

    const fn age(self) -> u64 {
        self.block() >> WHEEL_BITS
    }
}

/// A queue in which only the events of the present slot are in order; those of later slots lie as they
/// came, and later blocks and ages are not even told apart by slot. So a million events to come cost
/// no more than a thousand (hierarchical timing wheels: Varghese and Lauck, 1987).
pub(crate) struct Queue {
    /// The slot whose events are being handed out.
    slot: u64,
    /// Its events, the next one last.
    sorted: Vec<Event>,
    /// How many of these [`soon`](Self::soon) has told of.
    told: usize,
    /// Those that were added to it since it was sorted.
    added: BinaryHeap<Reverse<Event>>,
    /// The later slots of its block.
    slots: Wheel,
    /// The later blocks of its age.
    blocks: Wheel,
    /// The later ages.
    ages: BTreeMap<u64, Vec<Event>>,
}

impl Queue {
    /// The most that [`soon`](Self::soon) tells of.
    const SOON: usize = 64;

    pub(crate) fn new() -> Self {
        Self {
            slot: 0,
            sorted: Vec::new(),
            told: 0,
            added: BinaryHeap::new(),
            slots: Wheel::new(),
            blocks: Wheel::new(),
            ages: BTreeMap::new(),
        }
    }

    /// Adds an event; one before the last that was handed out comes next.
    #[inline]
    pub(crate) fn push(&mut self, event: Event) {
        let slot = event.slot();
        if slot <= self.slot {
            self.added.push(Reverse(event));
        } else if event.block() == self.slot >> WHEEL_BITS {
            self.slots.push(slot, event);
        } else if event.age() == self.slot >> (2 * WHEEL_BITS) {
            self.blocks.push(event.block(), event);
        } else {
            self.ages.entry(event.age()).or_default().push(event);
        }
    }

    /// The next event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Event> {
        loop {
            let added = self.added.peek().map(|Reverse(event)| *event);
            match (self.sorted.last(), added) {
                (Some(sorted), Some(added)) if added < *sorted => return self.pop_added(),
                (Some(_), _) => {
                    self.told = self.told.saturating_sub(1);
                    return self.sorted.pop();
                }
                (None, Some(_)) => return self.pop_added(),
                (None, None) => self.advance()?,
            }
        }
    }

    /// The next events of the slot that were not told of yet, once all that were have come.
    #[inline]
    pub(crate) fn soon(&mut self) -> &[Event] {
        if self.told > 0 || self.sorted.is_empty() {
            return &[];
        }
        self.told = self.sorted.len().min(Self::SOON);
        &self.sorted[self.sorted.len() - self.told..]
    }

    fn pop_added(&mut self) -> Option<Event> {
        self.added.pop().map(|Reverse(event)| event)
    }

    /// Goes on to the next slot that has events.
    fn advance(&mut self) -> Option<()> {
        while self.slots.is_empty() {
            self.turn_block()?;
        }
        let (slot, events) = self.slots.take_after(self.slot)?;
        self.slot = slot;
        self.slots.give_room(std::mem::replace(&mut self.sorted, events));
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        self.told = 0;
        Some(())
    }

    /// Goes on to just before the next block that has events.
    fn turn_block(&mut self) -> Option<()> {
        if self.blocks.is_empty() {
            let (age, mut events) = self.ages.pop_first()?;
            self.slot = (age << (2 * WHEEL_BITS)).saturating_sub(1);
            events.drain(..).for_each(|event| self.blocks.push(event.block(), event));
        }
        let (block, mut events) = self.blocks.take_after(self.slot >> WHEEL_BITS)?;
        self.slot = (block << WHEEL_BITS).saturating_sub(1);
        events.drain(..).for_each(|event| self.slots.push(event.slot(), event));
        self.blocks.give_room(events);
        Some(())
    }
}

/// Places for what has the same number, up to as many numbers ahead as there are places.
struct Wheel {
    places: Vec<Vec<Event>>,
    events: usize,
    /// Room that was left behind, for others to use.
    spare: Vec<Vec<Event>>,
}

impl Wheel {
    fn new() -> Self {
        let places = (0..1 << WHEEL_BITS).map(|_| Vec::new()).collect();
        Self { places, events: 0, spare: Vec::new() }
    }

    const fn is_empty(&self) -> bool {
        self.events == 0
    }

    #[inline]
    fn push(&mut self, number: u64, event: Event) {
        let place = &mut self.places[Self::place(number)];
        if place.capacity() == 0
            && let Some(spare) = self.spare.pop()
        {
            *place = spare;
        }
        place.push(event);
        self.events += 1;
    }

    /// The next number after `number` that has events, and they.
    fn take_after(&mut self, number: u64) -> Option<(u64, Vec<Event>)> {
        let mut numbers = (1..=1_u64 << WHEEL_BITS).map(|ahead| number.wrapping_add(ahead));
        let next = numbers.find(|next| !self.places[Self::place(*next)].is_empty())?;
        let events = std::mem::take(&mut self.places[Self::place(next)]);
        self.events -= events.len();
        Some((next, events))
    }

    fn give_room(&mut self, room: Vec<Event>) {
        if room.capacity() > 0 {
            self.spare.push(room);
        }
    }

    const fn place(number: u64) -> usize {
        (number % (1 << WHEEL_BITS)) as usize
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
