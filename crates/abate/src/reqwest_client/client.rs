use std::borrow::Borrow;
use std::future::{Future, poll_fn};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::convert::into_http;
use super::future::CallFuture;
use super::service::ReqwestService;
use crate::error::{BoxError, Error};
use crate::stack::{Stack, StackService};

/// Calls through layers with reqwest's own requests and responses; see the
/// [module](crate::reqwest_client).
#[derive(Debug, Clone)]
pub struct ReqwestClient<S = StackService<ReqwestService>> {
    inner: S,
}

impl ReqwestClient {
    /// Calls with `client` through `stack`, whose handles tell of it.
    #[must_use]
    pub fn new(client: ReqwestService, stack: impl Borrow<Stack>) -> Self {
        Self::over(stack.borrow().layer(client))
    }
}

impl<S> ReqwestClient<S> {
    /// Calls through `service`: layers of any kind, with [`ReqwestService`] or something else below.
    #[must_use]
    pub const fn over(service: S) -> Self {
        Self { inner: service }
    }

    /// Calls, as `reqwest::Client::execute` does.
    ///
    /// # Errors
    ///
    /// Those of the service within; the `reqwest::Error` is the source.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the call.
    pub fn execute(
        &self,
        request: reqwest::Request,
    ) -> impl Future<Output = Result<reqwest::Response, Error>> + use<S>
    where
        Self: Service<reqwest::Request, Response = reqwest::Response, Error = Error> + Clone,
    {
        let mut client = self.clone();
        async move {
            poll_fn(|cx| client.poll_ready(cx)).await?;
            client.call(request).await
        }
    }
}

impl<S, B> Service<reqwest::Request> for ReqwestClient<S>
where
    S: Service<Request<reqwest::Body>, Response = Response<B>>,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = reqwest::Response;
    type Error = Error;
    type Future = CallFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    fn call(&mut self, request: reqwest::Request) -> CallFuture<S::Future> {
        let url = request.url().clone();
        CallFuture::new(into_http(request).map(|request| self.inner.call(request)), url)
    }
}
