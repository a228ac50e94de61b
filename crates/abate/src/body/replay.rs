use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::reel::{LONGEST_RECORDED, Reel};
use super::tape::{Reader, Tape};

/// The body of a request below a retry layer.
///
/// A body that is whole in memory (`Full`, `Empty`, a `String`, a box around one of them) can be
/// sent again, whatever its size, and is not copied to be sent the first time. One that streams is
/// recorded while it is sent: another attempt sends what the first has sent, and goes on with the
/// rest. What is longer than 64 KiB is sent once, and so is what breaks off. None of it is ever an
/// error.
///
/// # Errors
///
/// Those of the body within.
///
/// # Cancel safety
///
/// A body that is dropped half read leaves the rest of the stream to the next attempt.
pub struct ReplayBody<B: Body>(State<B>);

enum State<B: Body> {
    /// All there is, until it is taken.
    Whole(Option<Bytes>),
    /// Sent once.
    Once(B),
    /// Read from where it is recorded. Not in here: its room would be moved with every request.
    Taped(Reader<B>),
}

impl<B: Body<Data = Bytes> + Unpin> ReplayBody<B> {
    /// The same body once more, if it is whole in memory: what is left of it, without a copy.
    ///
    /// Of a stream there is no second one, and the answer is `None`. So a layer below the retry that
    /// sends a request again by itself sends the whole body or none. For tower-http's
    /// `FollowRedirect` that is the difference between a 307 or 308 that is followed and one that is
    /// the answer:
    ///
    /// ```
    /// use abate::{BoxError, Policy, ReplayBody, RetryLayer};
    /// use bytes::Bytes;
    /// use http_body_util::Full;
    /// use hyper_util::client::legacy::Client;
    /// use hyper_util::rt::TokioExecutor;
    /// use tower::ServiceBuilder;
    /// use tower_http::follow_redirect::FollowRedirectLayer;
    /// use tower_http::follow_redirect::policy::{PolicyExt, Standard, clone_body_fn};
    ///
    /// let again = clone_body_fn(ReplayBody::<Full<Bytes>>::try_clone);
    /// let redirects = Standard::default().and::<_, _, BoxError>(again);
    /// let service = ServiceBuilder::new()
    ///     .layer(RetryLayer::new(Policy::default()))
    ///     .layer(FollowRedirectLayer::with_policy(redirects))
    ///     .service(Client::builder(TokioExecutor::new()).build_http());
    /// # fn check<S: tower::Service<http::Request<Full<Bytes>>>>(_: S) {}
    /// # check(service);
    /// ```
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        self.data().map(|data| Self::whole(data.cloned()))
    }

    /// A body that is sent once, and not looked at.
    pub(crate) const fn once(body: B) -> Self {
        Self(State::Once(body))
    }

    /// A body made of `data`, for a repeat.
    pub(crate) const fn whole(data: Option<Bytes>) -> Self {
        Self(State::Whole(data))
    }

    /// A stream from its beginning, for a repeat; `None` while another attempt reads it, and when
    /// there is no record of what was read.
    pub(crate) fn taped(tape: &Tape<B>) -> Option<Self> {
        tape.read_again().map(|reader| Self(State::Taped(reader)))
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
        let length = body.size_hint();
        if length.exact().is_none() {
            return Self::stream(length, body);
        }
        let mut cx = Context::from_waker(Waker::noop());
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Pending => Self::stream(length, body),
            Poll::Ready(None) => Self::whole(None),
            Poll::Ready(Some(Err(error))) => Self::begun(length, Err(error), body),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if body.is_end_stream() => Self::whole(Some(data)),
                Ok(data) => Self::begun(length, Ok(Frame::data(data)), body),
                Err(other) => Self::begun(length, Ok(other), body),
            },
        }
    }

    #[cold]
    fn stream(length: SizeHint, body: B) -> Self {
        if length.lower() > LONGEST_RECORDED as u64 {
            return Self::once(body);
        }
        Self(State::Taped(Reader::new(Reel::new(length, None, body))))
    }

    #[cold]
    fn begun(length: SizeHint, first: Result<Frame<Bytes>, B::Error>, rest: B) -> Self {
        Self(State::Taped(Reader::new(Reel::new(length, Some(first), rest))))
    }

    /// The data of a whole body; `None` for a stream.
    #[inline]
    pub(crate) fn data(&self) -> Option<Option<&Bytes>> {
        match &self.0 {
            State::Whole(data) => Some(data.as_ref()),
            State::Once(_) | State::Taped(_) => None,
        }
    }

    /// What a stream is recorded on; `None` for one that is sent once, and for a whole body.
    #[inline]
    pub(crate) fn tape(&self) -> Option<Tape<B>> {
        match &self.0 {
            State::Taped(reader) => reader.tape(),
            State::Whole(_) | State::Once(_) => None,
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
        match &mut self.0 {
            State::Whole(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            State::Once(body) => Pin::new(body).poll_frame(cx),
            State::Taped(reader) => reader.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Whole(data) => data.is_none(),
            State::Once(body) => body.is_end_stream(),
            State::Taped(reader) => reader.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Whole(data) => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
            State::Once(body) => body.size_hint(),
            State::Taped(reader) => reader.size_hint(),
        }
    }
}

impl<B: Body + Default> Default for ReplayBody<B> {
    fn default() -> Self {
        Self(State::Once(B::default()))
    }
}

impl<B: Body> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Whole(_) => "ReplayBody(whole)",
            State::Once(_) => "ReplayBody(once)",
            State::Taped(_) => "ReplayBody(stream)",
        })
    }
}
