use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use pin_project::pin_project;

use crate::error::BoxError;

/// The body of a request of [`Client`](super::Client).
///
/// One made of bytes or text is sent again without a copy, whatever its size, by retries and by
/// redirects that ask for it (307, 308). A [stream](Self::new) is sent again by the retry if it has up
/// to 64 KiB, and follows no redirect.
///
/// # Examples
///
/// ```
/// use abate::Body;
/// use bytes::Bytes;
/// use futures_util::stream;
/// use http_body::Frame;
/// use http_body_util::StreamBody;
///
/// let whole = Body::from(r#"{"sku":7}"#);
/// let lines = stream::iter(["one\n", "two\n"])
///     .map(|line| Ok::<_, std::io::Error>(Frame::data(Bytes::from(line))));
/// let streamed = Body::new(StreamBody::new(lines));
/// # use futures_util::StreamExt;
/// # use http_body::Body as _;
/// assert_eq!(whole.size_hint().exact(), Some(9));
/// assert_eq!(streamed.size_hint().exact(), None);
/// ```
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>),
}

impl Body {
    /// A body without data.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Inner::Whole(None))
    }

    /// Any body: a stream, in `http_body_util::StreamBody`, or what came from elsewhere.
    ///
    /// One that is whole (a `Full`) is recognised, and sent again as bytes are.
    #[must_use]
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Inner::Stream(Box::pin(Boxed(body))))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Whole(data) => Poll::Ready(data.take().map(|data| Ok(Frame::data(data)))),
            Inner::Stream(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(data) => data.is_none(),
            Inner::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(data) => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
            Inner::Stream(body) => body.size_hint(),
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(data: Bytes) -> Self {
        Self(Inner::Whole(Some(data).filter(|data| !data.is_empty())))
    }
}

impl From<Vec<u8>> for Body {
    fn from(data: Vec<u8>) -> Self {
        Bytes::from(data).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<&'static [u8]> for Body {
    fn from(data: &'static [u8]) -> Self {
        Bytes::from_static(data).into()
    }
}

impl From<()> for Body {
    fn from((): ()) -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Inner::Whole(_) => "Body(whole)",
            Inner::Stream(_) => "Body(stream)",
        })
    }
}

/// A body whose errors are boxed.
#[pin_project]
struct Boxed<B>(#[pin] B);

impl<B> http_body::Body for Boxed<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.project().0.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
