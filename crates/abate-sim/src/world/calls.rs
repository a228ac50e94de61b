//! The calls that are under way, by their numbers.

use std::collections::VecDeque;

use abate_core::budget::Grant;
use abate_core::session::Session;

use crate::guard::Leave;

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) session: Session,
    pub(super) state: State,
    /// Whether it holds a place under its process's concurrency limit.
    pub(super) limited: bool,
    /// Where its latest request is.
    pub(super) place: Place,
    /// Requests of it that the server has not done with.
    pub(super) jobs: u16,
    pub(super) group: u16,
    pub(super) client: u32,
    pub(super) process: u32,
    /// The attempts that were sent.
    pub(super) attempt: u32,
    /// What its present timer is told by; those with others are over.
    pub(super) tag: u32,
    pub(super) sent: u64,
    /// Where what it holds is, if it holds anything.
    pub(super) held: Option<u32>,
    /// The request, by its call and attempt, that a server makes this call for.
    pub(super) parent: Option<(u32, u32)>,
}

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its turn under the concurrency limit.
    Queued,
    /// To be sent, since its turn has come.
    Turn,
    /// An answer.
    Sent,
    /// The end of the wait before a retry.
    Pausing,
    /// The retry's slot.
    Slot,
    /// Nothing.
    Ended,
}

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On its way, or gone.
    Elsewhere,
    /// In the server's queue.
    Queued,
    /// In work, or answered.
    Begun,
}

/// What the present attempt of a call holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) leave: Option<Leave>,
    pub(super) grant: Option<Grant>,
}

/// All calls from the first that is not over.
#[derive(Debug, Default)]
pub(super) struct Calls {
    first: u32,
    calls: VecDeque<Call>,
    held: Vec<Held>,
    free: Vec<u32>,
}

impl Calls {
    /// With room for so many at once, which are then never moved.
    pub(super) fn with_room(calls: usize) -> Self {
        Self { calls: VecDeque::with_capacity(calls), ..Self::default() }
    }

    /// The number of the next call.
    pub(super) fn next(&self) -> u32 {
        self.first.wrapping_add(u32::try_from(self.calls.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn push(&mut self, call: Call) {
        self.calls.push_back(call);
    }

    /// `None` for one that is over.
    #[inline]
    pub(super) fn get(&mut self, number: u32) -> Option<&mut Call> {
        self.calls.get_mut(number.wrapping_sub(self.first) as usize)
    }

    /// Reads from calls that will be needed soon, many at once: among a million of them each is far away in
    /// memory, and to fetch one after the other when its event comes takes a third of all time.
    pub(super) fn touch(&mut self, numbers: impl Iterator<Item = u32>) {
        let calls = numbers.filter_map(|number| {
            let call = self.calls.get(number.wrapping_sub(self.first) as usize)?;
            Some(u64::from(call.tag) ^ call.sent ^ u64::from(call.session.attempts()))
        });
        std::hint::black_box(calls.fold(0, |all, call| all ^ call));
    }

    /// Forgets those that are over, from the first on.
    #[inline]
    pub(super) fn forget(&mut self) {
        while let Some(call) = self.calls.front()
            && call.state == State::Ended
            && call.jobs == 0
        {
            self.calls.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Keeps what the present attempt of a call holds.
    pub(super) fn hold(&mut self, number: u32, held: Held) {
        if held.leave.is_none() && held.grant.is_none() {
            return;
        }
        let place = match self.free.pop() {
            Some(place) => {
                self.held[place as usize] = held;
                place
            }
            None => {
                self.held.push(held);
                u32::try_from(self.held.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(call) = self.get(number) {
            call.held = Some(place);
        }
    }

    /// Takes what pays for the present attempt of a call.
    pub(super) fn take_grant(&mut self, number: u32) -> Option<Grant> {
        let place = self.get(number)?.held?;
        self.held[place as usize].grant.take()
    }

    /// Takes all that a call holds.
    pub(super) fn release(&mut self, number: u32) -> Held {
        let Some(place) = self.get(number).and_then(|call| call.held.take()) else {
            return Held::default();
        };
        self.free.push(place);
        std::mem::take(&mut self.held[place as usize])
    }
}
