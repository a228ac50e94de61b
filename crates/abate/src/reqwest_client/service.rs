use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::convert::into_reqwest;
use super::future::ResponseFuture;
use crate::error::{BoxError, Error};

/// A client of reqwest at the bottom of layers; see the [module](crate::reqwest_client).
///
/// It takes any body, shared or not; one that is whole stays so, and reqwest's redirects can send it
/// again. The version of a request is kept, and its timeout where it has one of reqwest. The
/// response knows its final URL once it is a `reqwest::Response` again.
///
/// # Errors
///
/// An [`Error`] whose source is the `reqwest::Error`; of a relative URI too.
#[derive(Debug, Clone)]
pub struct ReqwestService {
    client: reqwest::Client,
}

impl ReqwestService {
    /// Calls with `client`. If that repeats calls itself (reqwest does so by default where a server of
    /// HTTP/2 says that it has not looked at the request), then nobody here knows of it:
    /// [`build`](Self::build) switches that off.
    #[must_use]
    pub const fn new(client: reqwest::Client) -> Self {
        Self { client }
    }

    /// Calls with the client that `builder` makes, without reqwest's own repeats: they are the retry
    /// layer's, which counts and paces them.
    ///
    /// # Errors
    ///
    /// Those of `reqwest::ClientBuilder::build`.
    pub fn build(builder: reqwest::ClientBuilder) -> Result<Self, reqwest::Error> {
        builder.retry(reqwest::retry::never()).build().map(Self::new)
    }
}

impl<B> Service<Request<B>> for ReqwestService
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Response = Response<reqwest::Body>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.client.poll_ready(cx).map_err(Error::from_inner)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        ResponseFuture::new(into_reqwest(request).map(|request| self.client.call(request)))
    }
}
