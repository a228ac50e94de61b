//! The budgets of one process that share a store, and the messages between.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use abate_core::budget::Rules;
use abate_core::fleet::{ClientCore, Message, Order, Reply, StoreError, StoreFailure, Terms};
use abate_core::rng::Seed;

use super::error::FleetError;
use crate::budget::BudgetHandle;
use crate::clock;

/// Under a lock that only those take who carry messages or add a budget: calls do not.
#[derive(Debug, Default)]
pub(super) struct Members(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    members: Vec<Member>,
    carrier: Option<Waker>,
    closed: bool,
}

struct Member {
    name: Arc<str>,
    rules: Rules,
    client: ClientCore,
}

/// A message, and whose it is.
pub(super) struct Letter {
    member: usize,
    name: Arc<str>,
    terms: Terms,
    message: Message,
}

impl Letter {
    pub(super) fn order(&self) -> Order<'_> {
        Order { budget: &self.name, terms: self.terms, message: self.message }
    }
}

impl Members {
    /// The budget of that name, made if there is none.
    pub(super) fn join(
        &self,
        name: &str,
        rules: Rules,
        terms: Terms,
    ) -> Result<BudgetHandle, FleetError> {
        if name.trim().is_empty() {
            return Err(FleetError::Unnamed);
        }
        let mut registry = self.lock();
        if registry.closed {
            return Err(FleetError::Closed);
        }
        if let Some(member) = registry.members.iter().find(|member| *member.name == *name) {
            return if member.rules == rules && *member.client.terms() == terms {
                Ok(BudgetHandle::of(member.client.budget().clone()))
            } else {
                Err(FleetError::Taken(name.to_owned()))
            };
        }
        let client = ClientCore::new(rules, terms, Seed::random(), clock::now());
        let budget = BudgetHandle::of(client.budget().clone());
        registry.members.push(Member { name: name.into(), rules, client });
        if let Some(carrier) = registry.carrier.take() {
            carrier.wake();
        }
        Ok(budget)
    }

    /// When the next message is due; ready with `None` after the end. Wakes the task when that changes.
    pub(super) fn poll_due(&self, cx: &Context<'_>) -> Poll<Option<Instant>> {
        let mut registry = self.lock();
        if registry.closed {
            return Poll::Ready(None);
        }
        registry.carrier = Some(cx.waker().clone());
        let now = clock::now();
        let due = registry.members.iter().filter_map(|member| {
            // First the waker: a ticket that opens in between is seen by `due`.
            member.client.wake_when_short(cx.waker());
            member.client.due(now)
        });
        due.min().map_or(Poll::Pending, |due| Poll::Ready(Some(due)))
    }

    /// All messages that are due.
    pub(super) fn letters(&self) -> Vec<Letter> {
        let now = clock::now();
        self.collect(|client| client.message(now))
    }

    /// The last messages; there are no others after them.
    pub(super) fn farewells(&self) -> Vec<Letter> {
        let now = clock::now();
        self.close();
        self.collect(|client| client.farewell(now))
    }

    /// Ends the driver.
    pub(super) fn close(&self) {
        let mut registry = self.lock();
        registry.closed = true;
        if let Some(carrier) = registry.carrier.take() {
            carrier.wake();
        }
    }

    fn collect(&self, mut take: impl FnMut(&mut ClientCore) -> Option<Message>) -> Vec<Letter> {
        let mut registry = self.lock();
        let members = registry.members.iter_mut().enumerate();
        let letters = members.filter_map(|(member, Member { name, client, .. })| {
            let message = take(client)?;
            Some(Letter { member, name: Arc::clone(name), terms: *client.terms(), message })
        });
        letters.collect()
    }

    /// Tells whose message it was what came of it.
    pub(super) fn settle(&self, letter: &Letter, result: Result<&Reply, &StoreError>) {
        let now = clock::now();
        let number = letter.message.number;
        let mut registry = self.lock();
        let Some(member) = registry.members.get_mut(letter.member) else { return };
        match result {
            Ok(reply) => member.client.answered(number, reply, now),
            Err(error) => member.client.failed(number, error.failure(), now),
        }
    }

    /// Nobody will ever know what came of it.
    pub(super) fn lose(&self, letter: &Letter) {
        let now = clock::now();
        if let Some(member) = self.lock().members.get_mut(letter.member) {
            member.client.failed(letter.message.number, StoreFailure::Unknown, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        // Nothing that holds it can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for Member { name, client, .. } in &self.members {
            let (processes, failures) = (client.processes(), client.failures());
            map.entry(name, &format_args!("{processes} processes, {failures} failures in a row"));
        }
        map.finish()
    }
}
