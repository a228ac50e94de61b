use std::fmt;
use std::task::{Context, Poll};

use abate_core::breaker::Tail;
use abate_core::classify::Health;
use abate_core::deadline::Deadline;
use http::HeaderMap;

use crate::error::{Error, ErrorKind};
use crate::permits::Permit;
use crate::timer::Timer;
use crate::{clock, observe};

/// What a response body holds on to until it has been read, or dropped.
#[derive(Default)]
pub struct Held {
    permit: Option<Permit>,
    tail: Option<Tail>,
    end: Option<End>,
}

/// When the body must have been read.
struct End {
    kind: ErrorKind,
    timer: Timer,
}

impl Held {
    /// Keeps a place among the calls in flight.
    #[inline]
    pub(crate) fn keep_permit(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// Keeps a word with the breaker, should the body break off.
    #[inline]
    pub(crate) fn keep_tail(&mut self, tail: Tail) {
        self.tail = Some(tail);
    }

    /// Ends the body with an error of `kind` when it has not been read `at` a moment.
    #[inline]
    pub(crate) fn keep_until(&mut self, at: Deadline, kind: ErrorKind) {
        let earlier = self.end.as_ref().is_none_or(|own| !own.timer.end().comes_by(at));
        if earlier {
            self.end = Some(End { kind, timer: Timer::new(at) });
        }
    }

    /// Whether its time is up already: a body that never pauses is never pending.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.timer.end().has_passed(clock::now()))
    }

    /// The body was pending: ready when its time is up.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.end else { return Poll::Pending };
        end.timer.poll(cx)
    }

    /// What it is that its time was up.
    pub(super) fn end_error(&self) -> Error {
        let error = Error::new(self.end.as_ref().map_or(ErrorKind::Deadline, |end| end.kind));
        observe::ended(&error);
        error
    }

    /// The body was read to its end.
    pub(super) fn release(&mut self) {
        *self = Self::default();
    }

    /// The trailers are there: gRPC tells in them whether the call failed after all.
    pub(super) fn trailers(&mut self, trailers: &HeaderMap) {
        let failed = |tail: &Tail| tail.health(trailers) == Health::Failure;
        if self.tail.as_ref().is_some_and(failed) {
            self.broke();
        }
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

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("permit", &self.permit.is_some())
            .field("breaker", &self.tail.is_some())
            .field("end", &self.end.as_ref().map(|end| end.timer.end()))
            .finish()
    }
}
