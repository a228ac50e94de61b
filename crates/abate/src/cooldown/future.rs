//! The future of a call whose answer may ask all others to wait.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use abate_core::cooldown::Cooldown;
use abate_core::retry_after::{Hint, Pushback};
use http::{Response, StatusCode};
use pin_project::pin_project;
use tower_service::Service;

use super::gate::Gate;
use crate::clock;
use crate::delayed::Delayed;
use crate::error::{BoxError, Error};

/// The future of [`CooldownGate`](super::CooldownGate).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
pub struct ResponseFuture<S, R>
where
    S: Service<R>,
{
    #[pin]
    call: Delayed<S, R>,
    cooldown: Arc<Cooldown>,
    gate: Arc<Gate>,
}

impl<S, R> ResponseFuture<S, R>
where
    S: Service<R>,
{
    pub(super) const fn new(call: Delayed<S, R>, cooldown: Arc<Cooldown>, gate: Arc<Gate>) -> Self {
        Self { call, cooldown, gate }
    }
}

impl<S, R, B> Future for ResponseFuture<S, R>
where
    S: Service<R, Response = Response<B>>,
    S::Error: Into<BoxError> + 'static,
{
    type Output = Result<Response<B>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.call.poll(cx))?;
        let (status, headers, hints) = (response.status(), response.headers(), &this.gate.hints);
        let not_now = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        // Of the successes only one of gRPC's, which may be none.
        if not_now.contains(&status) || (status.is_success() && hints.may_be_in(status, headers)) {
            let hint = Hint::read(headers, hints, clock::wall);
            if let Some(delay) = hint.pushback().map(Pushback::delay) {
                this.cooldown.note(delay, clock::now());
            }
        }
        Poll::Ready(Ok(response))
    }
}

impl<S, R> fmt::Debug for ResponseFuture<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("call", &self.call)
            .field("cooldown", &self.cooldown)
            .finish_non_exhaustive()
    }
}
