use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::breaker::Tail;
use abate_core::deadline::Deadline;

use crate::error::{Error, ErrorKind};
use crate::permits::Permit;
use crate::timer::Timer;
use crate::{clock, observe};

/// What a layer gives a response body to hold on to.
pub struct Held(Kind);

enum Kind {
    /// Nothing.
    Nothing,
    /// A place among the calls in flight.
    Permit(Permit),
    /// A word with the breaker, should the body break off.
    Tail(Tail),
    /// The moment by which it must have been read, and what it is when it has not.
    End(Deadline, ErrorKind),
}

/// What a response body holds on to until it has been read, or dropped.
#[derive(Default)]
pub(super) struct Guards {
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

impl Held {
    pub(crate) fn permit(permit: Option<Permit>) -> Self {
        Self(permit.map_or(Kind::Nothing, Kind::Permit))
    }

    pub(crate) fn tail(tail: Option<Tail>) -> Self {
        Self(tail.map_or(Kind::Nothing, Kind::Tail))
    }

    /// Ends the body with an error of `kind` at a moment, if it `covers` the body.
    pub(crate) const fn end(covers: bool, at: Deadline, kind: ErrorKind) -> Self {
        Self(if covers { Kind::End(at, kind) } else { Kind::Nothing })
    }
}

impl Guards {
    #[inline]
    pub(super) fn add(&mut self, held: Held) {
        match held.0 {
            Kind::Nothing => {}
            Kind::Permit(permit) => self.permit = Some(permit),
            Kind::Tail(tail) => self.tail = Some(tail),
            Kind::End(at, kind) => {
                let earlier = self.end.as_ref().is_none_or(|own| own.at.earlier(at) != own.at);
                if earlier {
                    self.end = Some(End { at, kind, timer: None });
                }
            }
        }
    }

    /// Whether its time is up already: a body that never pauses is never pending.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.at.remaining(clock::now()).is_zero())
    }

    /// The body was pending: ready when its time is up.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.end else { return Poll::Pending };
        let timer = end.timer.get_or_insert_with(|| Box::pin(Timer::new(end.at)));
        timer.as_mut().poll(cx)
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

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Nothing => "Nothing",
            Kind::Permit(_) => "Permit",
            Kind::Tail(_) => "Tail",
            Kind::End(..) => "End",
        })
    }
}
