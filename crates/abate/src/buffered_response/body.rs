use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

/// The body of a response that was read ahead: all of it, or its beginning if it is a long one, or
/// nothing if it was not to be read.
///
/// It has the same bytes and trailers as the body below, in other frames. Where it is all there, its
/// size is exact, unless trailers follow: a size that is known is sent as a `content-length`, behind
/// which HTTP/1.1 has no trailers.
///
/// # Errors
///
/// Those of the body below; none where it was read to its end.
///
/// # Cancel safety
///
/// Dropped, it drops what is left of the body below.
#[pin_project]
pub struct BufferedBody<B> {
    /// What was read, in order; an empty one is none.
    ahead: [Bytes; 2],
    /// Boxed: they are rare, and their room would be moved with every response.
    trailers: Option<Box<HeaderMap>>,
    /// What was not read; `None` if nothing is left.
    #[pin]
    rest: Option<B>,
}

impl<B> BufferedBody<B> {
    /// A body that was read to its end.
    pub(super) fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { ahead: [data, Bytes::new()], trailers: trailers.map(Box::new), rest: None }
    }

    /// A body of which there is more.
    pub(super) const fn begun(ahead: [Bytes; 2], rest: Option<B>) -> Self {
        Self { ahead, trailers: None, rest }
    }

    /// A body that was not touched.
    pub(super) const fn unread(body: B) -> Self {
        Self::begun([Bytes::new(), Bytes::new()], Some(body))
    }

    fn ahead(&self) -> u64 {
        self.ahead.iter().map(|data| data.len() as u64).sum()
    }
}

/// All of `data`, without a copy where it is `Bytes` already.
pub(super) fn whole(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

impl<B: Body> Body for BufferedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(data) = this.ahead.iter_mut().find(|data| !data.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(mem::take(data)))));
        }
        if let Some(trailers) = this.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(*trailers))));
        }
        match this.rest.as_pin_mut() {
            Some(rest) => rest.poll_frame(cx).map_ok(|frame| frame.map_data(whole)),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.iter().all(Bytes::is_empty)
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match (&self.rest, &self.trailers) {
            (Some(rest), _) => rest.size_hint(),
            (None, Some(_)) => SizeHint::new(),
            (None, None) => SizeHint::with_exact(0),
        };
        let (ahead, mut hint) = (self.ahead(), SizeHint::new());
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint.set_lower(rest.lower().saturating_add(ahead));
        hint
    }
}

impl<B: Default> Default for BufferedBody<B> {
    fn default() -> Self {
        Self::unread(B::default())
    }
}

impl<B> fmt::Debug for BufferedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedBody")
            .field("ahead", &self.ahead())
            .field("whole", &self.rest.is_none())
            .finish_non_exhaustive()
    }
}
