use std::sync::Arc;
use std::task::{Context, Poll};

use abate_core::retry_after::HintSources;
use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use crate::error::{BoxError, Error};

/// The service of [`RetryAfterLayer`](super::RetryAfterLayer).
#[derive(Debug, Clone)]
pub struct RetryAfter<S> {
    inner: S,
    sources: Option<Arc<HintSources>>,
}

impl<S> RetryAfter<S> {
    pub(super) const fn new(inner: S, sources: Option<Arc<HintSources>>) -> Self {
        Self { inner, sources }
    }
}

impl<S, B, ResBody> Service<Request<B>> for RetryAfter<S>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError> + 'static,
{
    type Response = Response<ResBody>;
    type Error = Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), self.sources.clone())
    }
}
