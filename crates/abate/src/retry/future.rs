//! The future of a call that may be tried again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use abate_core::outcome::Outcome;
use abate_core::session::{Decision, Retry, Stop, StopReason};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project::pin_project;
use tower_service::Service;

use super::call::Call;
use super::pause::Pause;
use crate::body::ReplayBody;
use crate::clock;
use crate::context::Scope;
use crate::error::{BoxError, Error};
use crate::report::TriedResult;

/// The future of [`Retry`](super::Retry).
///
/// # Cancel safety
///
/// Dropping it drops the attempt under way and whatever the layers below hold for it; a retry that
/// was granted and not sent gives back its token and its slot.
#[pin_project]
pub struct ResponseFuture<S, B, ResBody>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
{
    #[pin]
    state: State<S::Future, S, B, ResBody>,
    call: Call<S>,
    /// Whether it is made below the retry of another call.
    apart: bool,
}

#[pin_project(project = StateProj)]
enum State<F, S, B: Body, ResBody> {
    Attempt(#[pin] F),
    /// Boxed: most calls never pause, and none should carry the room for it.
    Pause(Pin<Box<Pause<S, B, ResBody>>>),
}

impl<S, B, ResBody> ResponseFuture<S, B, ResBody>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
{
    pub(super) const fn new(attempt: S::Future, call: Call<S>, apart: bool) -> Self {
        Self { state: State::Attempt(attempt), call, apart }
    }
}

impl<S, B, ResBody> Future for ResponseFuture<S, B, ResBody>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Unpin,
    ResBody: Body,
{
    type Output = Result<Response<ResBody>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let scope = Scope::poll();
        let mut this = self.project();
        let _sent = scope.keep_sent(*this.apart);
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Attempt(attempt) => {
                    let result = ready!(this.call.poll_attempt(&scope, attempt, cx));
                    match after(this.call, &scope, result.map_err(Error::from_inner)) {
                        Next::End(result) => return Poll::Ready(result),
                        Next::Pause(pause) => State::Pause(pause),
                    }
                }
                StateProj::Pause(pause) => {
                    match ready!(this.call.poll_pause(&scope, pause.as_mut(), cx)) {
                        Ok((mut service, request, grant)) => {
                            State::Attempt(this.call.send(&scope, &mut service, request, grant))
                        }
                        Err(refusal) => {
                            return Poll::Ready(Err(this.call.end_unsent(&scope, refusal)));
                        }
                    }
                }
            };
            this.state.set(next);
        }
    }
}

enum Next<S, B: Body, ResBody> {
    End(Result<Response<ResBody>, Error>),
    Pause(Pin<Box<Pause<S, B, ResBody>>>),
}

/// What follows an attempt. A success at once is the short way through.
fn after<S, B, ResBody>(
    call: &mut Call<S>,
    scope: &Scope,
    result: Result<Response<ResBody>, Error>,
) -> Next<S, B, ResBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let outcome = match &result {
        Ok(response) => Outcome::of(response),
        Err(error) => Outcome::Fault(error.fault()),
    };
    match call.decide(scope, &outcome, clock::wall) {
        Decision::Done => Next::End(call.succeed(scope, result)),
        Decision::Retry(retry) => pause(call, scope, retry, result),
        Decision::Stop(stop) => Next::End(call.fail(scope, result, stop)),
    }
}

#[cold]
fn pause<S, B, ResBody>(
    call: &mut Call<S>,
    scope: &Scope,
    retry: Retry,
    result: Result<Response<ResBody>, Error>,
) -> Next<S, B, ResBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Some(request) = call.repeat() else {
        // Cannot be: what was a valid head once is one again.
        let reason = StopReason::BodyNotReplayable;
        return Next::End(call.fail(scope, result, Stop::because(reason)));
    };
    let (tried, discarded) = match result {
        Ok(response) => (TriedResult::Status(response.status()), Some(response.into_body())),
        Err(error) => (TriedResult::Fault(error.fault()), None),
    };
    call.note_retry(scope, tried, &retry);
    Next::Pause(Box::pin(Pause::new(scope.now(), retry, request, discarded)))
}

impl<S, B, ResBody> fmt::Debug for ResponseFuture<S, B, ResBody>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Attempt(_) => "attempting",
            State::Pause(_) => "pausing",
        };
        f.debug_struct("ResponseFuture").field("state", &state).field("call", &self.call).finish()
    }
}
