use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use super::terms::Terms;
use crate::context::Scope;
use crate::error::{BoxError, Error};

/// The service of [`IdempotencyKeyLayer`](super::IdempotencyKeyLayer).
#[derive(Debug, Clone)]
pub struct IdempotencyKey<S> {
    inner: S,
    terms: Arc<Terms>,
}

impl<S> IdempotencyKey<S> {
    pub(super) const fn new(inner: S, terms: Arc<Terms>) -> Self {
        Self { inner, terms }
    }
}

impl<S, B, ResBody> Service<Request<B>> for IdempotencyKey<S>
where
    S: Service<Request<B>, Response = Response<ResBody>> + Clone,
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
        let (mut head, body) = request.into_parts();
        if self.terms.put_key(&mut head).is_err() {
            Scope::call().set_sent(None);
            // Gives back what was reserved for a call that is not made.
            self.inner = self.inner.clone();
            return ResponseFuture::refused();
        }
        ResponseFuture::new(self.inner.call(Request::from_parts(head, body)))
    }
}
