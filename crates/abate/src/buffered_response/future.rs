//! The future of an attempt that ends with its body.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use abate_core::deadline::Deadline;
use abate_core::outcome::Fault;
use http::Response;
use http::response::Parts;
use http_body::Body;
use pin_project::pin_project;

use super::BufferedBody;
use super::reading::Reading;
use super::terms::Terms;
use crate::context::Scope;
use crate::error::{BoxError, Error, ErrorKind};
use crate::fault::Known;
use crate::observe;
use crate::timer::Timer;

/// The future of [`BufferedResponse`](super::BufferedResponse).
///
/// # Errors
///
/// Those of the service below. That of a body which breaks off, with its own error as the source;
/// it is never [`Fault::Unsent`], since there was a head. [`ErrorKind::AttemptTimeout`] when the body
/// was not read in time, [`ErrorKind::Deadline`] when the deadline of the call came before that.
///
/// # Cancel safety
///
/// Dropping it drops the attempt, with its body.
#[pin_project]
pub struct ResponseFuture<F, B> {
    #[pin]
    state: State<F, B>,
    /// `None` for a request that is answered without a body.
    terms: Option<Terms>,
    /// Until it runs, its end is the deadline of the call.
    timer: Timer,
    /// What it is when it ends.
    kind: ErrorKind,
}

#[pin_project(project = StateProj)]
enum State<F, B> {
    Head(#[pin] F),
    Body(Option<Parts>, Reading<B>),
    Ended,
}

impl<F, B> ResponseFuture<F, B> {
    #[inline]
    pub(super) const fn new(call: F, terms: Option<Terms>, deadline: Deadline) -> Self {
        let timer = Timer::new(deadline);
        Self { state: State::Head(call), terms, timer, kind: ErrorKind::Deadline }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError> + 'static,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<BufferedBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let StateProj::Head(call) = this.state.as_mut().project() {
            let response = ready!(call.poll(cx)).map_err(Error::from_inner)?;
            let Some(terms) = this.terms.filter(|terms| terms.reads(&response)) else {
                return Poll::Ready(Ok(response.map(BufferedBody::unread)));
            };
            let (head, body) = response.into_parts();
            this.state.set(State::Body(Some(head), Reading::new(body, terms.cap)));
        }
        let StateProj::Body(head, reading) = this.state.as_mut().project() else {
            return Poll::Pending;
        };
        let read = match reading.poll(cx) {
            Poll::Ready(read) => read.map_err(broken),
            Poll::Pending => {
                if let Some(terms) = this.terms.take() {
                    let (end, kind) = terms.end(Scope::poll().now(), this.timer.end());
                    this.timer.reset(end);
                    *this.kind = kind;
                }
                ready!(this.timer.poll(cx));
                Err(over(*this.kind))
            }
        };
        let head = head.take();
        // The body ends here and now, also if this future is kept for a while.
        this.state.set(State::Ended);
        let Some(head) = head else { return Poll::Pending };
        Poll::Ready(read.map(|body| Response::from_parts(head, body)))
    }
}

/// There was a head, so the request was sent, whatever the error says.
#[cold]
fn broken(source: BoxError) -> Error {
    let error = Error::from_inner(source);
    match error.fault() {
        Fault::Unsent => Error::from_inner(Known::new(Fault::Ambiguous).with_source(error)),
        _ => error,
    }
}

#[cold]
fn over(kind: ErrorKind) -> Error {
    let error = Error::new(kind);
    observe::ended(&error);
    error
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Head(_) => "ResponseFuture(waiting for the head)",
            State::Body(..) => "ResponseFuture(reading the body)",
            State::Ended => "ResponseFuture(ended)",
        })
    }
}
