use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::breaker::Tail;
use abate_core::deadline::Deadline;

use crate::error::{Error, ErrorKind};
use crate::permits::Permit;
use crate::timer::Timer;
use crate::{clock, observe};

/// What a response body holds on to until it has been read, or dropped.
#[derive(Default)]
pub struct Guards {
    permit: Option<Permit>,
    tail: Option<Tail>,
    end: Option<End>,
}

/// When the body must have been read.
struct End {
    at: Deadline,
    kind: ErrorKind,
    /// Boxed when it is first waited for: most bodies are there at once.
    timer: Option<Pin<Box<Timer>>>,
}

impl Guards {
    pub(crate) fn permit(permit: Option<Permit>) -> Self {
        Self { permit, ..Self::default() }
    }

    pub(crate) fn tail(tail: Tail) -> Self {
        Self { tail: Some(tail), ..Self::default() }
    }

    /// Ends the body with an error of `kind` at a moment.
    pub(crate) fn end(at: Deadline, kind: ErrorKind) -> Self {
        Self { end: Some(End { at, kind, timer: None }), ..Self::default() }
    }

    pub(super) fn join(&mut self, other: Self) {
        self.permit = self.permit.take().or(other.permit);
        self.tail = self.tail.take().or(other.tail);
        self.end = match (self.end.take(), other.end) {
            (Some(own), Some(other)) if own.at.earlier(other.at) != own.at => Some(other),
            (own, other) => own.or(other),
        };
    }

    /// The body was pending: whether its time is up.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        let Some(end) = &mut self.end else { return Poll::Pending };
        let timer = end.timer.get_or_insert_with(|| Box::pin(Timer::new(end.at)));
        timer.as_mut().poll(cx).map(|()| {
            let error = Error::new(end.kind);
            observe::ended(&error);
            error
        })
    }

    /// The body was read to its end.
    pub(super) fn release(&mut self) {
        *self = Self::default();
    }

    /// The body broke off.
    pub(super) fn broke(&mut self) {
        let tail = self.tail.take();
        self.release();
        if let Some(tail) = tail {
            observe::transition(tail.broke(clock::now()));
        }
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guards")
            .field("permit", &self.permit.is_some())
            .field("breaker", &self.tail.is_some())
            .field("end", &self.end.as_ref().map(|end| end.at))
            .finish()
    }
}
