use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use super::gate::Gate;
use crate::context::{self, Scope};
use crate::delayed::Delayed;
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;

/// The service of [`CooldownLayer`](super::CooldownLayer).
#[derive(Debug, Clone)]
pub struct CooldownGate<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S> CooldownGate<S> {
    pub(super) const fn new(inner: S, gate: Arc<Gate>) -> Self {
        Self { inner, gate }
    }
}

impl<S, B, ResBody> Service<Request<B>> for CooldownGate<S>
where
    S: Service<Request<B>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError> + 'static,
{
    type Response = Response<ResBody>;
    type Error = Error;
    type Future = ResponseFuture<S, Request<B>>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let now = scope.now();
        let cooldown = self.gate.cooldown(&request, now);
        let call = match cooldown.ask(now, &self.gate.streams) {
            None => Delayed::running(self.inner.call(request)),
            Some(cooling) => {
                scope.set_sent(None);
                // Gives back what was reserved for a call that is not made now.
                self.inner = self.inner.clone();
                let held = cooling.turn.saturating_duration_since(now);
                let left = context::deadline(&request).remaining(now);
                if held > self.gate.hold.min(left) {
                    let error = Error::new(ErrorKind::CoolingDown);
                    let error = error.with_retry_at(Some(cooling.turn));
                    observe::refused(&error);
                    Delayed::refused(error)
                } else {
                    Delayed::held(self.inner.clone(), request, cooling.turn)
                }
            }
        };
        ResponseFuture::new(call, cooldown, Arc::clone(&self.gate))
    }
}
