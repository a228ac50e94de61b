use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use abate_core::outcome::Fault;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use crate::fault::Known;

/// What a [`Dependency`](super::Dependency) does with one request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) delay: Duration,
    pub(super) end: End,
}

#[derive(Debug, Clone)]
pub(super) enum End {
    Response(Response<AnswerBody>),
    Fault(Fault),
    Hang,
}

impl Answer {
    /// Answers with this status: a number, or an [`http::StatusCode`].
    ///
    /// # Panics
    ///
    /// When it is none, as 99 is.
    #[must_use]
    #[track_caller]
    pub fn status<S>(status: S) -> Self
    where
        S: TryInto<StatusCode, Error: fmt::Debug>,
    {
        let mut response = Response::new(AnswerBody::default());
        *response.status_mut() = valid(status.try_into());
        Self::new(End::Response(response))
    }

    /// Answers nothing: the client fails, with an error that means this for a repeat.
    #[must_use]
    pub const fn fault(fault: Fault) -> Self {
        Self::new(End::Fault(fault))
    }

    /// Does not answer, ever.
    #[must_use]
    pub const fn hang() -> Self {
        Self::new(End::Hang)
    }

    /// The same, so long after the request has arrived.
    #[must_use]
    pub const fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// A response with one more header.
    ///
    /// # Panics
    ///
    /// When name or value is none, or when there is no response to have it.
    #[must_use]
    #[track_caller]
    pub fn with_header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: fmt::Debug>,
        V: TryInto<HeaderValue, Error: fmt::Debug>,
    {
        self.response().headers_mut().append(valid(name.try_into()), valid(value.try_into()));
        self
    }

    /// A response with this body.
    ///
    /// # Panics
    ///
    /// When there is no response to have it.
    #[must_use]
    #[track_caller]
    pub fn with_body(mut self, data: impl Into<Bytes>) -> Self {
        self.response().body_mut().data = data.into();
        self
    }

    /// A response whose body breaks off: after its data comes an error.
    ///
    /// # Panics
    ///
    /// When there is no response to have it.
    #[must_use]
    #[track_caller]
    pub fn with_broken_body(mut self) -> Self {
        self.response().body_mut().breaks = true;
        self
    }

    const fn new(end: End) -> Self {
        Self { delay: Duration::ZERO, end }
    }

    #[track_caller]
    fn response(&mut self) -> &mut Response<AnswerBody> {
        let response = match &mut self.end {
            End::Response(response) => Some(response),
            End::Fault(_) | End::Hang => None,
        };
        valid(response.ok_or("an answer without a response has neither headers nor a body"))
    }
}

/// A script that cannot be played is a mistake in the test, and ends it where it stands.
#[track_caller]
#[expect(clippy::expect_used, reason = "as said above")]
fn valid<T>(value: Result<T, impl fmt::Debug>) -> T {
    value.expect("an answer that can be given")
}

/// The body of a [`Dependency`](super::Dependency)'s response, honest about its length.
#[derive(Debug, Clone, Default)]
pub struct AnswerBody {
    data: Bytes,
    breaks: bool,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Known;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Known>>> {
        let data = std::mem::take(&mut self.data);
        Poll::Ready(if !data.is_empty() {
            Some(Ok(Frame::data(data)))
        } else if std::mem::take(&mut self.breaks) {
            Some(Err(Known::new(Fault::Ambiguous)))
        } else {
            None
        })
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && !self.breaks
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.data.len() as u64;
        let mut hint = SizeHint::with_exact(length);
        if self.breaks {
            hint = SizeHint::new();
            hint.set_lower(length);
        }
        hint
    }
}
