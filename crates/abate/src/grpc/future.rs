//! The future of an answer whose first frame is looked at.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use abate_core::deadline::Deadline;
use abate_core::grpc;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use pin_project::pin_project;

use super::body::PeekedBody;
use crate::context::Scope;
use crate::error::{BoxError, Error};
use crate::timer::Timer;

/// The future of [`GrpcStatus`](super::GrpcStatus).
///
/// # Cancel safety
///
/// Dropping it drops the call, or the answer that has begun to come.
#[pin_project]
pub struct ResponseFuture<F, B> {
    #[pin]
    state: State<F, B>,
    look_ahead: Duration,
}

#[pin_project(project = StateProj)]
enum State<F, B> {
    Call(#[pin] F),
    /// The head is there, and in it no word on the outcome; `None` once it was handed on.
    Peek(Option<Response<B>>, Timer),
}

impl<F, B> ResponseFuture<F, B> {
    #[inline]
    pub(super) const fn new(inner: F, look_ahead: Duration) -> Self {
        Self { state: State::Call(inner), look_ahead }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body + Unpin,
    B::Error: Into<BoxError> + 'static,
    E: Into<BoxError> + 'static,
{
    type Output = Result<Response<PeekedBody<B>>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let StateProj::Call(call) = this.state.as_mut().project() {
            let response = ready!(call.poll(cx)).map_err(Error::from_inner)?;
            if !leaves_it_open(&response) {
                return Poll::Ready(Ok(response.map(PeekedBody::untouched)));
            }
            this.state.set(State::Peek(Some(response), Timer::new(Deadline::NEVER)));
        }
        let StateProj::Peek(held, timer) = this.state.project() else { return Poll::Pending };
        let Some(response) = held else { return Poll::Pending };
        let size = response.body().size_hint();
        let frame = match Pin::new(response.body_mut()).poll_frame(cx) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending if this.look_ahead.is_zero() => None,
            Poll::Pending => {
                if !timer.is_running() {
                    timer.reset(Deadline::after(Scope::poll().now(), *this.look_ahead));
                }
                ready!(timer.poll(cx));
                None
            }
        };
        let Some(response) = held.take() else { return Poll::Pending };
        Poll::Ready(match frame {
            None => Ok(response.map(PeekedBody::untouched)),
            Some(None) => Ok(response.map(PeekedBody::ended)),
            Some(Some(Err(error))) => Err(Error::from_inner(error)),
            Some(Some(Ok(frame))) => Ok(match failure(frame) {
                Ok(trailers) => with_trailers_in_head(response, &trailers),
                Err(frame) => response.map(|body| PeekedBody::begun(frame, size, body)),
            }),
        })
    }
}

/// Whether the outcome of the call is still to come.
fn leaves_it_open<B: Body>(response: &Response<B>) -> bool {
    let headers = response.headers();
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    response.status() == StatusCode::OK
        && !headers.contains_key(&grpc::STATUS)
        && kind.is_none_or(|kind| kind.starts_with(b"application/grpc"))
        && !response.body().is_end_stream()
}

/// The trailers that tell of a failure; else the frame.
fn failure<D>(frame: Frame<D>) -> Result<HeaderMap, Frame<D>> {
    match frame.into_trailers() {
        Ok(trailers) if grpc::tells_of_failure(&trailers) => Ok(trailers),
        Ok(trailers) => Err(Frame::trailers(trailers)),
        Err(frame) => Err(frame),
    }
}

/// What a server sends that fails before it has sent anything.
#[cold]
fn with_trailers_in_head<B: Body>(
    mut response: Response<B>,
    trailers: &HeaderMap,
) -> Response<PeekedBody<B>> {
    let headers = response.headers_mut();
    // The protocol's own are the server's last word; of the application's none may be lost.
    for name in trailers.keys().filter(|name| name.as_str().starts_with("grpc-")) {
        headers.remove(name);
    }
    for (name, value) in trailers {
        headers.append(name, value.clone());
    }
    response.map(PeekedBody::ended)
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Call(_) => "ResponseFuture(calling)",
            State::Peek(..) => "ResponseFuture(looking ahead)",
        })
    }
}
