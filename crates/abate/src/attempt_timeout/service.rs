use std::task::{Context, Poll};
use std::time::Duration;

use abate_core::deadline::Deadline;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::future::ResponseFuture;
use crate::body::ResponseBody;
use crate::context::Scope;
use crate::error::{BoxError, Error, ErrorKind};

/// The service of [`AttemptTimeoutLayer`](super::AttemptTimeoutLayer).
#[derive(Debug, Clone)]
pub struct AttemptTimeout<S> {
    inner: S,
    timeout: Duration,
    covers_body: bool,
}

impl<S> AttemptTimeout<S> {
    pub(super) const fn new(inner: S, timeout: Duration, covers_body: bool) -> Self {
        Self { inner, timeout, covers_body }
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

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let own = Deadline::after(scope.now(), self.timeout);
        let end = own.earlier(scope.deadline(&request));
        let kind = if end == own { ErrorKind::AttemptTimeout } else { ErrorKind::Deadline };
        ResponseFuture::new(self.inner.call(request), end, kind, self.covers_body)
    }
}
