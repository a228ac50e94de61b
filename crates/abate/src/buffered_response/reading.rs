use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;

use super::body::{BufferedBody, whole};
use crate::error::BoxError;

/// After so many frames without a pause others have their turn, and the time is looked at: a body
/// that is made in memory need never be pending.
const FRAMES_AT_ONCE: usize = 64;

/// Reads a body to its end, or as far as the cap.
pub(super) struct Reading<B> {
    /// `None` when there is nothing more to read.
    body: Option<B>,
    cap: usize,
    /// What the body said at first that it has at the least.
    promised: u64,
    /// The first frame, until there is another one.
    first: Bytes,
    /// Joined: frames of a few bytes would take many times the memory of what is in them.
    joined: BytesMut,
}

impl<B> Reading<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    pub(super) fn new(body: B, cap: usize) -> Self {
        let promised = body.size_hint().lower();
        Self { body: Some(body), cap, promised, first: Bytes::new(), joined: BytesMut::new() }
    }

    /// The body, once it is known how it goes on; pending for ever after that.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<BufferedBody<B>, BoxError>> {
        for _ in 0..FRAMES_AT_ONCE {
            let Some(body) = &mut self.body else { return Poll::Pending };
            let frame = match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                None => return Poll::Ready(self.end(None)),
                Some(Err(error)) => {
                    self.body = None;
                    return Poll::Ready(Err(error.into()));
                }
                Some(Ok(frame)) => frame,
            };
            let ended = body.is_end_stream();
            match frame.into_data().map(whole) {
                Ok(data) if data.len() > self.cap.saturating_sub(self.length()) => {
                    let rest = self.body.take().filter(|_| !ended);
                    return Poll::Ready(Ok(BufferedBody::begun([self.take(), data], rest)));
                }
                Ok(data) => self.push(data),
                Err(other) => {
                    if let Ok(trailers) = other.into_trailers() {
                        return Poll::Ready(self.end(Some(trailers)));
                    }
                }
            }
            if ended {
                return Poll::Ready(self.end(None));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn end(&mut self, trailers: Option<HeaderMap>) -> Result<BufferedBody<B>, BoxError> {
        self.body = None;
        if (self.length() as u64) < self.promised {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(BufferedBody::whole(self.take(), trailers))
    }

    fn push(&mut self, data: Bytes) {
        if self.length() == 0 {
            self.first = data;
            return;
        }
        if self.joined.is_empty() {
            // The body was asked whether it is within the cap, so this is as well.
            let promised = usize::try_from(self.promised).unwrap_or(0);
            self.joined.reserve(promised.max(self.first.len() + data.len()));
            self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&data);
    }

    fn length(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    /// What was read.
    fn take(&mut self) -> Bytes {
        if self.joined.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.joined).freeze()
        }
    }
}
