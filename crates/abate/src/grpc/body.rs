use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project::pin_project;

/// The body of an answer whose first frame may have been looked at: it reads as the one below does.
#[pin_project]
pub struct PeekedBody<B: Body> {
    ahead: Ahead<B::Data>,
    #[pin]
    body: B,
}

enum Ahead<D> {
    Nothing,
    /// A frame, and the size that was stated before it was taken.
    Frame(Frame<D>, SizeHint),
    End,
}

impl<B: Body> PeekedBody<B> {
    pub(super) const fn untouched(body: B) -> Self {
        Self { ahead: Ahead::Nothing, body }
    }

    pub(super) const fn begun(frame: Frame<B::Data>, size: SizeHint, body: B) -> Self {
        Self { ahead: Ahead::Frame(frame, size), body }
    }

    pub(super) const fn ended(body: B) -> Self {
        Self { ahead: Ahead::End, body }
    }
}

impl<B: Body> Body for PeekedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        match this.ahead {
            Ahead::Nothing => this.body.poll_frame(cx),
            Ahead::End => Poll::Ready(None),
            Ahead::Frame(..) => match std::mem::replace(this.ahead, Ahead::Nothing) {
                Ahead::Frame(frame, _) => Poll::Ready(Some(Ok(frame))),
                Ahead::Nothing | Ahead::End => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.ahead {
            Ahead::Nothing => self.body.is_end_stream(),
            Ahead::Frame(..) => false,
            Ahead::End => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.ahead {
            Ahead::Nothing => self.body.size_hint(),
            // Not `Copy` in the first versions of http-body.
            Ahead::Frame(_, size) => SizeHint::clone(size),
            Ahead::End => SizeHint::with_exact(0),
        }
    }
}

impl<B: Body + Default> Default for PeekedBody<B> {
    fn default() -> Self {
        Self::untouched(B::default())
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for PeekedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekedBody")
            .field("begun", &!matches!(self.ahead, Ahead::Nothing))
            .field("body", &self.body)
            .finish()
    }
}
