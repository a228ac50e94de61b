//! The task that carries the messages.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use abate_core::fleet::{BudgetStore, StoreError, StoreFailure};
use tokio::sync::Mutex;
use tokio::time::{sleep_until, timeout};

use super::members::{Letter, Members};
use crate::clock;
use crate::observe;

/// How long an exchange may take. No retry waits longer than 200 ms for its answer, and what is lost
/// with it fades within seconds.
pub const EXCHANGE_TIMEOUT: Duration = Duration::from_millis(250);

/// The store, in the hands of one who carries at a time.
#[derive(Debug)]
pub(super) struct Carrier<S> {
    store: S,
    /// Held during an exchange; whether the last one failed.
    failing: Mutex<bool>,
}

impl<S: BudgetStore> Carrier<S> {
    pub(super) fn new(store: S) -> Self {
        Self { store, failing: Mutex::new(false) }
    }

    /// Carries whatever is due, until the end.
    pub(super) async fn drive(self: Arc<Self>, members: Arc<Members>) {
        let mut alarm = pin!(sleep_until(clock::now().into()));
        loop {
            let is_due = poll_fn(|cx| {
                loop {
                    let Some(due) = std::task::ready!(members.poll_due(cx)) else {
                        return false.into();
                    };
                    if due <= clock::now() {
                        return true.into();
                    }
                    alarm.as_mut().reset(due.into());
                    std::task::ready!(alarm.as_mut().poll(cx));
                }
            });
            if !is_due.await {
                return;
            }
            self.exchange(&members, members.letters()).await;
        }
    }

    /// Carries `letters`, and tells each what came of it, also if this is dropped half-way.
    pub(super) async fn exchange(&self, members: &Members, letters: Vec<Letter>) {
        if letters.is_empty() {
            return;
        }
        let mut open = Open { members, letters };
        let mut failing = self.failing.lock().await;
        let orders: Vec<_> = open.letters.iter().map(Letter::order).collect();
        let results = timeout(EXCHANGE_TIMEOUT, self.store.exchange(&orders)).await;
        let results = results.unwrap_or_default();

        let mut failed = None;
        let mut results = results.into_iter();
        for letter in std::mem::take(&mut open.letters) {
            let result = results.next().unwrap_or_else(|| Err(unanswered()));
            members.settle(&letter, result.as_ref());
            failed = failed.or(result.err());
        }
        match &failed {
            Some(error) if !*failing => observe::store_failed(error),
            None if *failing => observe::store_answers(),
            _ => {}
        }
        *failing = failed.is_some();
    }
}

fn unanswered() -> StoreError {
    StoreError::new(StoreFailure::Unknown, "no answer in time")
}

/// Letters of which nothing is known yet.
struct Open<'a> {
    members: &'a Members,
    letters: Vec<Letter>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.letters.iter().for_each(|letter| self.members.lose(letter));
    }
}
