//! The futures of the adapters.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;
use http_body::Body;
use pin_project::pin_project;
use reqwest::Url;
use tower_service::Service;

use super::convert::{answer, into_answer};
use crate::error::{BoxError, Error};

/// The future of [`ReqwestService`](super::ReqwestService).
///
/// # Cancel safety
///
/// Dropping it drops reqwest's call.
#[pin_project]
pub struct ResponseFuture(#[pin] Sent<<reqwest::Client as Service<reqwest::Request>>::Future>);

impl ResponseFuture {
    pub(super) fn new(
        sent: Result<<reqwest::Client as Service<reqwest::Request>>::Future, Error>,
    ) -> Self {
        Self(Sent::new(sent))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<reqwest::Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().0.poll(cx).map_ok(answer)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// The future of [`ReqwestClient`](super::ReqwestClient).
///
/// # Cancel safety
///
/// Dropping it drops the call below.
#[pin_project]
pub struct CallFuture<F> {
    #[pin]
    sent: Sent<F>,
    /// Of the request; taken when the call is over.
    url: Option<Url>,
}

impl<F> CallFuture<F> {
    pub(super) fn new(sent: Result<F, Error>, url: Url) -> Self {
        Self { sent: Sent::new(sent), url: Some(url) }
    }
}

impl<F, B, E> Future for CallFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError> + 'static,
{
    type Output = Result<reqwest::Response, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.sent.poll(cx));
        Poll::Ready(match (answer, this.url.take()) {
            (Ok(response), Some(url)) => Ok(into_answer(response, url)),
            (Ok(_), None) => return Poll::Pending, // polled again after its end
            (Err(error), _) => Err(error),
        })
    }
}

impl<F> fmt::Debug for CallFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}

/// A call, or why there is none.
#[pin_project(project = SentProjection)]
enum Sent<F> {
    Call(#[pin] F),
    /// Taken when it is told.
    Refused(Option<Error>),
}

impl<F> Sent<F> {
    fn new(sent: Result<F, Error>) -> Self {
        sent.map_or_else(|error| Self::Refused(Some(error)), Self::Call)
    }
}

impl<F, T, E> Future for Sent<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError> + 'static,
{
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            SentProjection::Call(call) => call.poll(cx).map_err(Error::from_inner),
            SentProjection::Refused(error) => {
                error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)))
            }
        }
    }
}
