use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use abate_core::retry_after::HintSources;
use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use crate::body::{Pass, Relay};
use crate::error::{BoxError, Error};

/// The service of [`RetryAfterLayer`](super::RetryAfterLayer).
pub struct RetryAfter<S, M = Pass> {
    inner: S,
    sources: Option<Arc<HintSources>>,
    relay: PhantomData<fn() -> M>,
}

impl<S, M> RetryAfter<S, M> {
    pub(super) const fn new(inner: S, sources: Option<Arc<HintSources>>) -> Self {
        Self { inner, sources, relay: PhantomData }
    }
}

impl<S, B, M> Service<Request<B>> for RetryAfter<S, M>
where
    S: Service<Request<B>>,
    S::Error: Into<BoxError> + 'static,
    M: Relay<S::Future>,
{
    type Response = Response<M::Body>;
    type Error = Error;
    type Future = ResponseFuture<S::Future, M>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline(always)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), self.sources.clone())
    }
}

impl<S: Clone, M> Clone for RetryAfter<S, M> {
    fn clone(&self) -> Self {
        Self::new(self.inner.clone(), self.sources.clone())
    }
}

impl<S: fmt::Debug, M> fmt::Debug for RetryAfter<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryAfter")
            .field("inner", &self.inner)
            .field("sources", &self.sources)
            .finish()
    }
}
