use std::fmt;

use abate_core::breaker::Tail;
use tokio::sync::OwnedSemaphorePermit;

use crate::{clock, observe};

/// What a response body holds on to until it has been read, or dropped.
#[derive(Default)]
pub struct Guards {
    permit: Option<OwnedSemaphorePermit>,
    tail: Option<Tail>,
}

impl Guards {
    pub(crate) fn permit(permit: Option<OwnedSemaphorePermit>) -> Self {
        Self { permit, tail: None }
    }

    pub(crate) fn tail(tail: Tail) -> Self {
        Self { permit: None, tail: Some(tail) }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.permit = self.permit.take().or(other.permit);
        self.tail = self.tail.take().or(other.tail);
    }

    /// The body was read to its end.
    pub(super) fn end(&mut self) {
        self.permit = None;
        self.tail = None;
    }

    /// The body broke off.
    pub(super) fn broke(&mut self) {
        self.permit = None;
        if let Some(tail) = self.tail.take() {
            observe::transition(tail.broke(clock::now()));
        }
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guards")
            .field("permit", &self.permit.is_some())
            .field("breaker", &self.tail.is_some())
            .finish()
    }
}
