//! Layers as middleware of reqwest-middleware.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body::Body;
use reqwest_middleware::{Middleware, Next};
use tower_layer::Layer;
use tower_service::Service;

use super::convert::{answer, into_answer, into_http, into_reqwest};
use crate::body::ReplayBody;
use crate::context::Attempt;
use crate::error::{BoxError, Error};
use crate::retry::RetryLayer;
use crate::stack::Stack;

/// All layers, over what comes next: that is called once for each attempt.
#[async_trait]
impl Middleware for Stack {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        handle(self, request, extensions, next).await
    }
}

/// Retries alone, in place of reqwest-retry's `RetryTransientMiddleware`.
#[async_trait]
impl Middleware for RetryLayer {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        handle(self, request, extensions, next).await
    }
}

async fn handle<'a, L, B>(
    layer: &L,
    request: reqwest::Request,
    extensions: &mut Extensions,
    next: Next<'a>,
) -> reqwest_middleware::Result<reqwest::Response>
where
    L: Layer<Rest<'a>>,
    L::Service: Service<Request<reqwest::Body>, Response = Response<B>, Error = Error>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let passed = Arc::new(Passed { given: extensions.clone(), left: Mutex::default() });
    let mut service = layer.layer(Rest { next, passed: Arc::clone(&passed) });
    let result = call(&mut service, request, extensions).await;
    if let Some(left) = passed.left().take() {
        *extensions = left;
    }
    result.map_err(reqwest_middleware::Error::middleware)
}

async fn call<S, B>(
    service: &mut S,
    request: reqwest::Request,
    extensions: &Extensions,
) -> Result<reqwest::Response, Error>
where
    S: Service<Request<reqwest::Body>, Response = Response<B>, Error = Error>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let url = request.url().clone();
    let mut request = into_http(request)?;
    // Where callers of reqwest-middleware put what is for layers: `Idempotent`, `Deadline`, a key.
    request.extensions_mut().extend(extensions.clone());
    poll_fn(|cx| service.poll_ready(cx)).await?;
    Ok(into_answer(service.call(request).await?, url))
}

/// The middleware below, and at last the client.
#[derive(Clone)]
struct Rest<'a> {
    next: Next<'a>,
    passed: Arc<Passed>,
}

/// The extensions of a call.
struct Passed {
    /// What each attempt gets: nothing that an earlier one left behind.
    given: Extensions,
    /// What the last attempt that came to an end made of it.
    left: Mutex<Option<Extensions>>,
}

impl Passed {
    fn left(&self) -> std::sync::MutexGuard<'_, Option<Extensions>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Service<Request<ReplayBody<reqwest::Body>>> for Rest<'a> {
    type Response = Response<reqwest::Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<reqwest::Body>, Error>> + Send + 'a>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(())) // so are clients of reqwest
    }

    fn call(&mut self, request: Request<ReplayBody<reqwest::Body>>) -> Self::Future {
        let Self { next, passed } = self.clone();
        Box::pin(async move {
            let mut extensions = passed.given.clone();
            if let Some(attempt) = request.extensions().get::<Attempt>() {
                extensions.insert(*attempt);
            }
            let result = next.run(into_reqwest(request)?, &mut extensions).await;
            *passed.left() = Some(extensions);
            result.map(answer).map_err(error)
        })
    }
}

impl fmt::Debug for Rest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}

/// An error of the middleware below, or of the client.
fn error(error: reqwest_middleware::Error) -> Error {
    match error {
        reqwest_middleware::Error::Reqwest(error) => Error::from_inner(error),
        reqwest_middleware::Error::Middleware(error) => match error.downcast::<Error>() {
            Ok(ours) => ours,
            // Else it would be a type of anyhow's, and what it means could not be found out.
            Err(error) => {
                Error::from_inner(error.reallocate_into_boxed_dyn_error_without_backtrace())
            }
        },
    }
}
