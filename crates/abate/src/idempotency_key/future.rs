//! The future of a call that was given a key, where it was to have one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use pin_project::pin_project;

use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;

/// The future of [`IdempotencyKey`](super::IdempotencyKey).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
pub struct ResponseFuture<F> {
    /// `None` for want of a key.
    #[pin]
    inner: Option<F>,
}

impl<F> ResponseFuture<F> {
    #[inline]
    pub(super) const fn new(inner: F) -> Self {
        Self { inner: Some(inner) }
    }

    pub(super) const fn refused() -> Self {
        Self { inner: None }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError> + 'static,
{
    type Output = Result<Response<B>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().inner.as_pin_mut() {
            Some(call) => call.poll(cx).map_err(Error::from_inner),
            None => Poll::Ready(Err(without_key())),
        }
    }
}

#[cold]
fn without_key() -> Error {
    let error = Error::new(ErrorKind::NoKey);
    observe::refused(&error);
    error
}

impl<F: fmt::Debug> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("inner", &self.inner).finish()
    }
}
