use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::future::ResponseFuture;
use super::terms::Terms;
use crate::body::ResponseBody;
use crate::context;
use crate::error::{BoxError, Error};

/// The service of [`AttemptTimeoutLayer`](super::AttemptTimeoutLayer).
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    terms: Terms,
}

impl<S> AttemptTimeout<S> {
    pub(super) const fn new(inner: S, terms: Terms) -> Self {
        Self { inner, terms }
    }
}

impl<S, B, ResBody> Service<Request<B>> for AttemptTimeout<S>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError> + 'static,
    ResBody: Body,
    ResBody::Error: Into<BoxError> + 'static,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = Error;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline(always)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Looked at only where it has to be: a request that is looked at is moved once more.
        let deadline = match context::deadline_above() {
            Deadline::NEVER => return self.call_bare(request),
            deadline => deadline,
        };
        ResponseFuture::new(self.inner.call(request), self.terms, deadline)
    }
}

impl<S> AttemptTimeout<S> {
    fn call_bare<B>(&mut self, request: Request<B>) -> ResponseFuture<S::Future>
    where
        S: Service<Request<B>>,
    {
        let deadline = context::deadline(&request);
        ResponseFuture::new(self.inner.call(request), self.terms, deadline)
    }
}
