use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use abate_core::striped::Striped;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::call::Call;
use super::future::ResponseFuture;
use super::pool::Pooled;
use super::shared::{Shared, Terms};
use crate::body::{Pass, Relay, ReplayBody};
use crate::context::Scope;
use crate::error::{BoxError, Error};

/// The service of [`RetryLayer`](super::RetryLayer).
pub struct Retry<S, M = Pass> {
    inner: S,
    shared: Striped<Shared<S>>,
    relay: PhantomData<fn() -> M>,
}

impl<S: Clone, M> Retry<S, M> {
    pub(super) fn new(inner: S, terms: Arc<Terms>) -> Self {
        let shared = Striped::new(Shared::new(terms, inner.clone()));
        Self { inner, shared, relay: PhantomData }
    }
}

impl<S, B, M> Service<Request<B>> for Retry<S, M>
where
    S: Service<Request<ReplayBody<B>>> + Clone,
    S::Error: Into<BoxError> + 'static,
    B: Body<Data = Bytes> + Unpin,
    M: Relay<S::Future>,
{
    type Response = Response<M::Body>;
    type Error = Error;
    type Future = ResponseFuture<S, B, M>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready(cx).map_err(Error::from_inner)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let scope = Scope::call();
        let terms = &self.shared.terms;
        let (mut head, body) = request.into_parts();
        let deadline = scope.earliest_deadline(&head.extensions);
        let now = scope.now();
        let shared = self.shared.hold();
        let mut call = Pooled::take(|| Call::new(terms, deadline, now));
        call.begin(terms, deadline, now, &head);
        let repeats = call.may_repeat(terms);
        let body = if repeats { ReplayBody::new(body) } else { ReplayBody::once(body) };
        let tape = body.tape();
        call.keep(&head, &body, tape.as_ref());
        call.mark(terms, &mut head, false);
        let sent = scope.keep_sent(call.is_apart());
        let told = call.hand_on(&scope, now);
        let attempt = self.inner.call(Request::from_parts(head, body));
        call.note_sent(terms, &scope);
        drop((told, sent));
        ResponseFuture::new(attempt, Pooled::new(call), shared, tape)
    }
}

impl<S: Clone, M> Clone for Retry<S, M> {
    fn clone(&self) -> Self {
        let (inner, shared) = (self.inner.clone(), self.shared.clone());
        Self { inner, shared, relay: PhantomData }
    }
}

impl<S: fmt::Debug, M> fmt::Debug for Retry<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry").field("inner", &self.inner).field("shared", &self.shared).finish()
    }
}
