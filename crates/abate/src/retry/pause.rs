//! Between two attempts: drain what was discarded, wait, take a slot, get a service ready.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use abate_core::budget::Grant;
use abate_core::deadline::Deadline;
use abate_core::session::{Retry, Session, StopReason};
use bytes::Buf;
use http::Request;
use http_body::Body;
use pin_project::pin_project;
use tower_service::Service;

use crate::body::ReplayBody;
use crate::error::{BoxError, Error};
use crate::timer::Timer;

/// A discarded response is read for this long, or this far, so that its connection can be used
/// again; beyond that a new connection is the cheaper one.
const DRAIN_TIME: Duration = Duration::from_millis(50);
const DRAIN_BYTES: usize = 64 * 1024;

#[pin_project]
pub(super) struct Pause<S, B: Body, ResBody> {
    step: Step,
    timer: Timer,
    #[pin]
    discarded: Option<ResBody>,
    drained: usize,
    /// When the wait ends.
    wake: Instant,
    grant: Option<Grant>,
    request: Option<Request<ReplayBody<B>>>,
    service: Option<S>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Drain,
    /// For the backoff, then for whatever the slot asks.
    Wait,
    Ready,
}

/// Why the retry is not sent after all.
pub(super) enum Refusal {
    /// It would come too late, or too many others are waiting.
    Stopped(StopReason),
    /// The service below did not get ready.
    NotReady(Error),
}

/// A service that is ready, the request for it, and what pays for it.
pub(super) type Prepared<S, B> = (S, Request<ReplayBody<B>>, Option<Grant>);

impl<S, B: Body, ResBody> Pause<S, B, ResBody> {
    pub(super) fn new(
        now: Instant,
        retry: Retry,
        request: Request<ReplayBody<B>>,
        discarded: Option<ResBody>,
    ) -> Self {
        let wake = retry.at;
        let (step, first) = match &discarded {
            Some(_) => (Step::Drain, wake.min(now + DRAIN_TIME)),
            None => (Step::Wait, wake),
        };
        Self {
            step,
            timer: Timer::new(Deadline::at(first)),
            discarded,
            drained: 0,
            wake,
            grant: retry.grant,
            request: Some(request),
            service: None,
        }
    }

    /// Waits for the moment to send, and for a service to send it with. Whatever the end, the
    /// pause has nothing left that would have to be given back.
    pub(super) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        now: Instant,
        session: &Session,
        fresh: impl Fn() -> S,
    ) -> Poll<Result<Prepared<S, B>, Refusal>>
    where
        S: Service<Request<ReplayBody<B>>>,
        S::Error: Into<BoxError> + 'static,
        ResBody: Body,
    {
        let ended = ready!(self.as_mut().poll_wait(cx, now, session, fresh));
        let this = self.project();
        let grant = this.grant.take();
        let prepared = this.service.take().zip(this.request.take());
        Poll::Ready(match (ended, prepared) {
            (Ok(()), Some((service, request))) => Ok((service, request, grant)),
            (Ok(()), None) => Err(Refusal::Stopped(StopReason::Cancelled)),
            (Err(refusal), _) => Err(refusal),
        })
    }

    fn poll_wait(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        now: Instant,
        session: &Session,
        fresh: impl Fn() -> S,
    ) -> Poll<Result<(), Refusal>>
    where
        S: Service<Request<ReplayBody<B>>>,
        S::Error: Into<BoxError> + 'static,
        ResBody: Body,
    {
        let mut this = self.project();
        let deadline = session.deadline();
        loop {
            match this.step {
                Step::Drain => {
                    let drained = poll_drain(this.discarded.as_mut(), this.drained, cx);
                    if drained.is_pending() {
                        ready!(poll_timer(this.timer, now, cx));
                    }
                    this.discarded.set(None);
                    this.timer.reset(Deadline::at(*this.wake));
                    *this.step = Step::Wait;
                }
                Step::Wait => {
                    ready!(poll_timer(this.timer, now, cx));
                    let slot = match this.grant.as_mut() {
                        Some(grant) => grant.slot(now, deadline.remaining(now)),
                        None => Ok(Duration::ZERO),
                    };
                    match slot {
                        Ok(Duration::ZERO) => *this.step = Step::Ready,
                        Ok(wait) => this.timer.reset(Deadline::after(now, wait)),
                        Err(denied) => return Poll::Ready(Err(Refusal::Stopped(denied.into()))),
                    }
                }
                Step::Ready => {
                    // Asked first: the service may have become ready, and the timer late.
                    if !session.has_time(now) {
                        return Poll::Ready(Err(Refusal::Stopped(StopReason::Deadline)));
                    }
                    let service = this.service.get_or_insert_with(&fresh);
                    if let Poll::Ready(ready) = service.poll_ready(cx) {
                        let ready = ready.map_err(Error::from_inner);
                        return Poll::Ready(ready.map_err(Refusal::NotReady));
                    }
                    this.timer.reset(deadline);
                    ready!(this.timer.poll(cx));
                }
            }
        }
    }
}

/// Does not go to the timer, which would take up to a millisecond, for a moment that has come.
fn poll_timer(timer: &mut Timer, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
    if timer.end().has_passed(now) { Poll::Ready(()) } else { timer.poll(cx) }
}

/// Reads on until the end, the limit, or an error: all of them are the end of draining.
fn poll_drain<B: Body>(
    mut body: Pin<&mut Option<B>>,
    drained: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<()> {
    while *drained < DRAIN_BYTES {
        let Some(body) = body.as_mut().as_pin_mut() else { break };
        match ready!(body.poll_frame(cx)) {
            Some(Ok(frame)) => {
                // A frame counts for something even if empty, so that no body is read for ever.
                *drained += frame.data_ref().map_or(1, |data| data.remaining().max(1));
            }
            Some(Err(_)) | None => break,
        }
    }
    Poll::Ready(())
}
