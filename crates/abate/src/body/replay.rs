use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The body of a request below a retry layer.
///
/// A body that is whole in memory (`Full`, `Empty`, a `String`, a box around one of them) can be
/// sent again; one that streams is handed through as it is, once. Neither is ever an error, and
/// neither is copied to be sent the first time.
///
/// # Errors
///
/// Those of the body within.
pub struct ReplayBody<B: Body>(State<B>);

enum State<B: Body> {
    /// All there is, until it is taken.
    Whole(Option<Bytes>),
    /// Read by its own.
    Stream(B),
    /// A first frame was looked at, and is not all: data, trailers, or an error. Boxed: it is rare,
    /// and its room would be moved with every request.
    Begun(Box<Begun<B>>),
}

struct Begun<B: Body> {
    first: Result<Frame<Bytes>, B::Error>,
    rest: B,
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// A body that is sent once, and not looked at.
    pub(crate) const fn once(body: B) -> Self {
        Self(State::Stream(body))
    }

    /// A body made of `data`, for a repeat.
    pub(crate) const fn whole(data: Option<Bytes>) -> Self {
        Self(State::Whole(data))
    }

    /// Looks whether `body` is whole.
    ///
    /// Only one with an exact length is looked into, and polled once for it, with a waker that
    /// does nothing: should it be pending, it wakes the waker of the next poll, which is a real
    /// one. A stream states no exact length, and is not touched.
    #[inline]
    pub(crate) fn new(mut body: B) -> Self {
        if body.is_end_stream() {
            return Self::whole(None);
        }
        if body.size_hint().exact().is_none() {
            return Self::once(body);
        }
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Pending => Self::once(body),
            Poll::Ready(None) => Self::whole(None),
            Poll::Ready(Some(Err(error))) => Self::begun(Err(error), body),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if body.is_end_stream() => Self::whole(Some(data)),
                Ok(data) => Self::begun(Ok(Frame::data(data)), body),
                Err(other) => Self::begun(Ok(other), body),
            },
        }
    }

    #[cold]
    fn begun(first: Result<Frame<Bytes>, B::Error>, rest: B) -> Self {
        Self(State::Begun(Box::new(Begun { first, rest })))
    }

    /// The data of a whole body; `None` for one that can be sent only once.
    #[inline]
    pub(crate) fn data(&self) -> Option<Option<&Bytes>> {
        match &self.0 {
            State::Whole(data) => Some(data.as_ref()),
            State::Stream(_) | State::Begun(_) => None,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let State::Stream(body) = &mut self.0 {
            return Pin::new(body).poll_frame(cx);
        }
        let (frame, rest) = match mem::replace(&mut self.0, State::Whole(None)) {
            State::Begun(begun) => {
                let Begun { first, rest } = *begun;
                (Some(first), State::Stream(rest))
            }
            State::Whole(data) => (data.map(|data| Ok(Frame::data(data))), State::Whole(None)),
            stream @ State::Stream(_) => (None, stream),
        };
        self.0 = rest;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Whole(data) => data.is_none(),
            State::Stream(body) => body.is_end_stream(),
            State::Begun(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Whole(data) => SizeHint::with_exact(data.as_ref().map_or(0, length)),
            State::Stream(body) => body.size_hint(),
            State::Begun(begun) => {
                let first = begun.first.as_ref().ok().and_then(Frame::data_ref).map_or(0, length);
                let rest = begun.rest.size_hint();
                let mut hint = SizeHint::new();
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(first));
                }
                hint.set_lower(rest.lower().saturating_add(first));
                hint
            }
        }
    }
}

fn length(data: &Bytes) -> u64 {
    data.len() as u64
}

impl<B: Body + Default> Default for ReplayBody<B> {
    fn default() -> Self {
        Self(State::Stream(B::default()))
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Whole(_) => "ReplayBody(whole)",
            State::Stream(_) | State::Begun(_) => "ReplayBody(once)",
        })
    }
}
