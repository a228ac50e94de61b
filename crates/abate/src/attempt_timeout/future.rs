//! The future of an attempt that may not take too long.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use abate_core::deadline::Deadline;
use http::Response;
use http_body::Body;
use pin_project::pin_project;

use crate::body::{Carry, Held, ResponseBody, Wrap};
use crate::context::Scope;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;
use crate::timer::Timer;

/// The future of [`AttemptTimeout`](super::AttemptTimeout).
///
/// # Cancel safety
///
/// Dropping it drops the attempt.
#[pin_project]
#[derive(Debug)]
pub struct ResponseFuture<F> {
    /// `None` once its time was up.
    #[pin]
    inner: Option<F>,
    #[pin]
    timer: Timer,
    end: Deadline,
    kind: ErrorKind,
    covers_body: bool,
}

impl<F> ResponseFuture<F> {
    pub(super) const fn new(inner: F, end: Deadline, kind: ErrorKind, covers_body: bool) -> Self {
        Self { inner: Some(inner), timer: Timer::new(end), end, kind, covers_body }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError> + 'static,
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    type Output = Result<Response<ResponseBody<B>>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let _scope = Scope::poll();
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            if let Poll::Ready(result) = inner.poll(cx) {
                let held = Held::end(*this.covers_body, *this.end, *this.kind);
                return Poll::Ready(match result {
                    Ok(response) => Ok(Wrap::carry(response, held)),
                    Err(error) => Err(Error::from_inner(error)),
                });
            }
            ready!(this.timer.poll(cx));
        }
        // The attempt ends here and now, also if this future is kept for a while.
        this.inner.set(None);
        let error = Error::new(*this.kind);
        observe::ended(&error);
        Poll::Ready(Err(error))
    }
}
