//! What a test tells a [probe](crate::probe) to do.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use tokio::time::{Sleep, sleep};

/// When something comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After so many polls that are pending, each of which wakes its task.
    Polls(u32),
    /// So long after the first poll.
    After(Duration),
    /// It never does.
    Never,
}

impl When {
    /// At the first poll.
    pub const NOW: Self = Self::Polls(0);
}

/// How a probe gets ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It does, then.
    Comes(When),
    /// It fails with [`ProbeError::Readiness`].
    Fails,
}

/// What a probe answers.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub(crate) result: Result<StatusCode, ProbeError>,
    pub(crate) when: When,
    pub(crate) content: Content,
}

/// What comes as the body of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content {
    pub(crate) chunks: u32,
    pub(crate) each: When,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Whole,
    Broken,
    Never,
}

/// The error of a probe, by where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeError {
    /// `poll_ready`.
    Readiness,
    /// The future of a call.
    Call,
    /// A body.
    Body,
}

impl Answer {
    /// Answers at once, with an empty body.
    #[must_use]
    pub fn status(code: u16) -> Self {
        Self::new(StatusCode::from_u16(code).map_err(|_| ProbeError::Call))
    }

    /// Fails with [`ProbeError::Call`].
    #[must_use]
    pub fn failing() -> Self {
        Self::new(Err(ProbeError::Call))
    }

    fn new(result: Result<StatusCode, ProbeError>) -> Self {
        let content = Content { chunks: 0, each: When::NOW, end: End::Whole };
        Self { result, when: When::NOW, content }
    }

    /// Answers then.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// With a body of so many chunks, before each of which there is a wait.
    #[must_use]
    pub fn with_chunks(mut self, chunks: u32, each: When) -> Self {
        (self.content.chunks, self.content.each) = (chunks, each);
        self
    }

    /// The body fails after its chunks.
    #[must_use]
    pub fn breaking_off(mut self) -> Self {
        self.content.end = End::Broken;
        self
    }

    /// The body hangs after its chunks.
    #[must_use]
    pub fn hanging(mut self) -> Self {
        self.content.end = End::Never;
        self
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as the test wanted")
    }
}

impl Error for ProbeError {}

/// A [`When`] that is under way.
#[derive(Debug)]
pub(crate) enum Wait {
    Polls(u32),
    Asleep(Pin<Box<Sleep>>),
    Unslept(Duration),
    Never,
}

impl Wait {
    pub(crate) const fn new(when: When) -> Self {
        match when {
            When::Polls(polls) => Self::Polls(polls),
            When::After(time) => Self::Unslept(time),
            When::Never => Self::Never,
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Unslept(time) = *self {
            *self = Self::Asleep(Box::pin(sleep(time)));
        }
        match self {
            Self::Polls(0) => Poll::Ready(()),
            Self::Polls(left) => {
                *left -= 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Asleep(timer) => timer.as_mut().poll(cx),
            Self::Unslept(_) | Self::Never => Poll::Pending,
        }
    }
}
