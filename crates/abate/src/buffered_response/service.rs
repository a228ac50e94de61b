use std::task::{Context, Poll};

use http::{Method, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::BufferedBody;
use super::future::ResponseFuture;
use super::terms::Terms;
use crate::context;
use crate::error::{BoxError, Error};

/// The service of [`BufferedResponseLayer`](super::BufferedResponseLayer).
#[derive(Debug, Clone)]
pub struct BufferedResponse<S> {
    inner: S,
    terms: Terms,
}

impl<S> BufferedResponse<S> {
    pub(super) const fn new(inner: S, terms: Terms) -> Self {
        Self { inner, terms }
    }
}

impl<S, B, ResBody> Service<Request<B>> for BufferedResponse<S>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError> + 'static,
    ResBody: Body + Unpin,
    ResBody::Error: Into<BoxError>,
{
    type Response = Response<BufferedBody<ResBody>>;
    type Error = Error;
    type Future = ResponseFuture<S::Future, ResBody>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let deadline = context::deadline(&request);
        // What it says of its length is of another answer's body.
        let terms = (request.method() != Method::HEAD).then_some(self.terms);
        ResponseFuture::new(self.inner.call(request), terms, deadline)
    }
}
