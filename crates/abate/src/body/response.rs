use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

use super::held::Held;
use crate::error::{BoxError, Error};

/// The body of a response that came through our layers.
///
/// It reads as the body below does: frames, trailers, size and end are the same. It holds the
/// permit of a concurrency limit until it has been read to its end or is dropped, and tells the
/// circuit breaker when it breaks off, or when its trailers are judged to be a failure (gRPC).
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
    held: Held,
}

impl<B: Body> ResponseBody<B> {
    #[inline]
    pub(super) fn new(body: B) -> Self {
        Self { body: Some(body), held: Held::default() }
    }

    /// What it holds; `None` when it is at its end.
    #[inline]
    pub(super) fn held(&mut self) -> Option<&mut Held> {
        if self.is_end() { None } else { Some(&mut self.held) }
    }

    #[inline]
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
            Poll::Ready(Some(Ok(_))) if this.held.is_over() && !body.is_end_stream() => None,
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => {
                ready!(this.held.poll_end(cx));
                None
            }
        };
        let Some(frame) = frame else {
            let error = this.held.end_error();
            this.body.set(None);
            this.held.broke();
            return Poll::Ready(Some(Err(error)));
        };
        if let Some(Ok(frame)) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            this.held.trailers(trailers);
        }
        match &frame {
            Some(Err(_)) => this.held.broke(),
            Some(Ok(_)) if !body.is_end_stream() => {}
            _ => this.held.release(),
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
        Self { body: Some(B::default()), held: Held::default() }
    }
}

impl<B: fmt::Debug> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("body", &self.body).field("held", &self.held).finish()
    }
}
