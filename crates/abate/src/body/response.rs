use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::guard::{Guards, Held};
use crate::error::{BoxError, Error};

/// The body of a response that came through our layers.
///
/// It reads as the body below does: frames, trailers, size and end are the same. It holds the
/// permit of a concurrency limit until it has been read to its end or is dropped, and tells the
/// circuit breaker when it breaks off.
///
/// # Errors
///
/// Those of the body below, as the source of an [`Error`]; and, where a timeout or a deadline covers
/// the body, its end by one of those, after which there is nothing more.
///
/// # Cancel safety
///
/// Dropped unread it gives back all that it holds.
#[pin_project]
pub struct ResponseBody<B> {
    /// `None` once its time was up.
    #[pin]
    body: Option<B>,
    guards: Guards,
}

impl<B: Body> ResponseBody<B> {
    #[inline]
    pub(super) fn new(body: B, held: Held) -> Self {
        let mut body = Self { body: Some(body), guards: Guards::default() };
        body.hold(held);
        body
    }

    #[inline]
    pub(super) fn hold(&mut self, held: Held) {
        // A body at its end is never polled by some readers: what it would hold goes at once.
        if !self.is_end() {
            self.guards.add(held);
        }
    }

    fn is_end(&self) -> bool {
        self.body.as_ref().is_none_or(B::is_end_stream)
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    type Data = B::Data;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Error>>> {
        let mut this = self.project();
        let Some(mut body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let frame = match body.as_mut().poll_frame(cx) {
            // Past its time and not at its end, though it never paused.
            Poll::Ready(Some(Ok(_))) if this.guards.is_over() && !body.is_end_stream() => None,
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => {
                ready!(this.guards.poll_end(cx));
                None
            }
        };
        let Some(frame) = frame else {
            let error = this.guards.end_error();
            this.body.set(None);
            this.guards.broke();
            return Poll::Ready(Some(Err(error)));
        };
        match &frame {
            Some(Err(_)) => this.guards.broke(),
            Some(Ok(_)) if !body.is_end_stream() => {}
            _ => this.guards.release(),
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Error::from_inner)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), B::size_hint)
    }
}

impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self { body: Some(B::default()), guards: Guards::default() }
    }
}

impl<B: fmt::Debug> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("body", &self.body)
            .field("guards", &self.guards)
            .finish()
    }
}
