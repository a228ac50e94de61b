use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::PeekedBody;
use super::future::ResponseFuture;
use crate::error::{BoxError, Error};

/// The service of [`GrpcStatusLayer`](super::GrpcStatusLayer).
#[derive(Debug, Clone)]
pub struct GrpcStatus<S> {
    inner: S,
    look_ahead: Duration,
}

impl<S> GrpcStatus<S> {
    pub(super) const fn new(inner: S, look_ahead: Duration) -> Self {
        Self { inner, look_ahead }
    }
}

impl<S, B, ResBody> Service<Request<B>> for GrpcStatus<S>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError> + 'static,
    ResBody: Body + Unpin,
    ResBody::Error: Into<BoxError> + 'static,
{
    type Response = Response<PeekedBody<ResBody>>;
    type Error = Error;
    type Future = ResponseFuture<S::Future, ResBody>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFuture::new(self.inner.call(request), self.look_ahead)
    }
}
