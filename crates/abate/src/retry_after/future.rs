//! The future of a response whose `Retry-After` is published.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use abate_core::retry_after::{Hint, HintSources};
use http::Response;
use pin_project::pin_project;

use crate::context::Attempt;
use crate::error::{BoxError, Error};
use crate::{clock, observe};

/// The future of [`RetryAfter`](super::RetryAfter).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
#[derive(Debug)]
pub struct ResponseFuture<F> {
    #[pin]
    inner: F,
    sources: Option<Arc<HintSources>>,
}

impl<F> ResponseFuture<F> {
    pub(super) const fn new(inner: F, sources: Option<Arc<HintSources>>) -> Self {
        Self { inner, sources }
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
        let this = self.project();
        let result = ready!(this.inner.poll(cx)).map_err(Error::from_inner);
        Poll::Ready(result.map(|mut response| {
            if !response.status().is_success() {
                publish(&mut response, this.sources.as_deref().unwrap_or(&HintSources::new()));
            }
            response
        }))
    }
}

#[cold]
fn publish<B>(response: &mut Response<B>, sources: &HintSources) {
    let hint = Hint::read(response.headers(), sources, clock::wall);
    // A retry above reads, and tells, by itself.
    if Attempt::current().is_none() {
        observe::malformed(hint);
    }
    if let Some(pushback) = hint.pushback() {
        response.extensions_mut().insert(pushback);
    }
}
