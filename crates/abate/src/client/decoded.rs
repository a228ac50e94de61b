use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project::pin_project;
use tower_http::decompression::DecompressionBody;

use crate::body::ResponseBody;
use crate::error::Error;

/// The body of a response of [`Client`](super::Client), decompressed as it is read.
///
/// # Errors
///
/// What broke the connection, the time that was up where the stack
/// [covers bodies](crate::Stack::covering_body), or data that is not what `Content-Encoding` says.
#[pin_project]
pub struct Decoded(#[pin] DecompressionBody<ResponseBody<Incoming>>);

impl Decoded {
    pub(super) const fn new(body: DecompressionBody<ResponseBody<Incoming>>) -> Self {
        Self(body)
    }
}

impl Body for Decoded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.project().0.poll_frame(cx).map_err(Error::from_inner)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Decoded").field(self.0.get_ref()).finish()
    }
}
