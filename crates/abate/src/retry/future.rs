//! The future of a call that may be tried again.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::outcome::Outcome;
use abate_core::session::{Decision, Retry, Session};
use abate_core::striped::Stripe;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project::pin_project;
use tower_service::Service;

use super::call::Call;
use super::pause::Pause;
use super::pool::Pooled;
use super::recall::Recall;
use super::shared::{Shared, Terms};
use crate::body::{Answer, Pass, Relay, ReplayBody, Slot, Tape, poll_answer};
use crate::clock;
use crate::context::Scope;
use crate::error::{BoxError, Error};

/// The future of [`Retry`](super::Retry).
///
/// # Cancel safety
///
/// Dropping it drops the attempt under way and whatever the layers below hold for it; a retry that
/// was granted and not sent gives back its token and its slot.
#[pin_project]
pub struct ResponseFuture<S, B, M = Pass>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
    M: Relay<S::Future>,
{
    #[pin]
    state: State<S::Future, S, B, M::Body>,
    call: Pooled,
    shared: Stripe<Shared<S>>,
    /// Where the request's body is, if it streams.
    tape: Option<Tape<B>>,
}

#[pin_project(project = StateProj)]
enum State<F, S, B: Body, ResBody> {
    Attempt(#[pin] F),
    Recall(Box<Recall<ResBody>>),
    /// Boxed: most calls never pause, and none should carry the room for it.
    Pause(Pin<Box<Pause<S, B, ResBody>>>),
}

impl<S, B, M> ResponseFuture<S, B, M>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
    M: Relay<S::Future>,
{
    #[inline]
    pub(super) const fn new(
        attempt: S::Future,
        call: Pooled,
        shared: Stripe<Shared<S>>,
        tape: Option<Tape<B>>,
    ) -> Self {
        Self { state: State::Attempt(attempt), call, shared, tape }
    }
}

impl<S, B, M> Answer for ResponseFuture<S, B, M>
where
    S: Service<Request<ReplayBody<B>>> + Clone,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Unpin,
    M: Relay<S::Future>,
{
    type Body = M::Body;

    #[inline]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<M::Body>) {
        let mut this = self.project();
        let Some(call) = this.call.get() else { return };
        let terms = &this.shared.terms;
        let scope = Scope::poll();
        let _sent = scope.keep_sent(call.is_apart());
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Attempt(attempt) => {
                    call.poll_attempt(terms, &scope, || M::poll_into(attempt, cx, slot));
                    let outcome = match &*slot {
                        Poll::Ready(Ok(response)) => Outcome::of(response),
                        Poll::Ready(Err(error)) => Outcome::Fault(error.fault()),
                        Poll::Pending => return,
                    };
                    if let Some(tape) = this.tape {
                        call.note_tape(tape);
                    }
                    match call.decide(terms, &scope, &outcome, clock::wall) {
                        Decision::Done => return call.succeed(&scope, slot),
                        Decision::Stop(stop) => return call.fail(&scope, slot, stop),
                        Decision::Retry(retry) => {
                            call.note_retry(&scope, slot, &retry);
                            match this.tape {
                                Some(_) => {
                                    State::Recall(recall(call.session(), &scope, retry, slot))
                                }
                                None => match pause(call, terms, &scope, None, retry, slot) {
                                    Some(pause) => State::Pause(pause),
                                    None => return,
                                },
                            }
                        }
                    }
                }
                StateProj::Recall(recall) => {
                    let tape = this.tape.as_ref();
                    let Poll::Ready(Some(retry)) = recall.poll(cx, tape, slot) else { return };
                    let Some(pause) = pause(call, terms, &scope, tape, retry, slot) else { return };
                    State::Pause(pause)
                }
                StateProj::Pause(pause) => {
                    match call.poll_pause(this.shared, &scope, pause.as_mut(), cx) {
                        Poll::Pending => return,
                        Poll::Ready(Ok(prepared)) => {
                            State::Attempt(call.send_again(terms, &scope, prepared))
                        }
                        Poll::Ready(Err(refusal)) => {
                            *slot = Poll::Ready(Err(call.end_unsent(&scope, refusal)));
                            return;
                        }
                    }
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, B, M> Future for ResponseFuture<S, B, M>
where
    S: Service<Request<ReplayBody<B>>> + Clone,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Unpin,
    M: Relay<S::Future>,
{
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
    }
}

#[cold]
fn recall<ResBody: Body>(
    session: &Session,
    scope: &Scope,
    retry: Retry,
    slot: &mut Slot<ResBody>,
) -> Box<Recall<ResBody>> {
    Box::new(Recall::new(scope.now(), session, retry, slot))
}

/// The pause before another attempt, which takes the answer; or, if there can be none after all, the
/// end of the call.
#[cold]
fn pause<S, B, ResBody>(
    call: &mut Call,
    terms: &Terms,
    scope: &Scope,
    tape: Option<&Tape<B>>,
    retry: Retry,
    slot: &mut Slot<ResBody>,
) -> Option<Pin<Box<Pause<S, B, ResBody>>>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Some(request) = call.repeat(terms, tape) else {
        call.give_up(scope, slot, &retry);
        return None;
    };
    let discarded = match mem::replace(slot, Poll::Pending) {
        Poll::Ready(Ok(response)) => Some(response.into_body()),
        _ => None,
    };
    Some(Box::pin(Pause::new(scope.now(), retry, request, discarded)))
}

impl<S, B, M> fmt::Debug for ResponseFuture<S, B, M>
where
    S: Service<Request<ReplayBody<B>>>,
    B: Body,
    M: Relay<S::Future>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Attempt(_) => "attempting",
            State::Recall(_) => "waiting for the body",
            State::Pause(_) => "pausing",
        };
        f.debug_struct("ResponseFuture").field("state", &state).field("call", &self.call).finish()
    }
}
