//! The future of a response whose `Retry-After` is published.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use abate_core::retry_after::{Hint, HintSources};
use http::Response;
use pin_project::pin_project;

use crate::body::{Answer, Pass, Relay, Slot, poll_answer};
use crate::context::Attempt;
use crate::error::Error;
use crate::{clock, observe};

/// The future of [`RetryAfter`](super::RetryAfter).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
#[derive(Debug)]
pub struct ResponseFuture<F, M = Pass> {
    #[pin]
    inner: F,
    sources: Option<Arc<HintSources>>,
    relay: PhantomData<fn() -> M>,
}

impl<F, M> ResponseFuture<F, M> {
    #[inline]
    pub(super) const fn new(inner: F, sources: Option<Arc<HintSources>>) -> Self {
        Self { inner, sources, relay: PhantomData }
    }
}

impl<F, M: Relay<F>> Answer for ResponseFuture<F, M> {
    type Body = M::Body;

    #[inline(always)]
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<M::Body>) {
        let this = self.project();
        M::poll_into(this.inner, cx, slot);
        let sources = this.sources.as_deref();
        if let Poll::Ready(Ok(response)) = slot
            && may_have_a_hint(response, sources)
        {
            publish(response, sources.unwrap_or(&HintSources::new()));
        }
    }
}

impl<F, M: Relay<F>> Future for ResponseFuture<F, M> {
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        poll_answer(self, cx)
    }
}

#[inline]
fn may_have_a_hint<B>(response: &Response<B>, sources: Option<&HintSources>) -> bool {
    match sources {
        None => !response.status().is_success(),
        Some(sources) => sources.may_be_in(response.status(), response.headers()),
    }
}

#[cold]
fn publish<B>(response: &mut Response<B>, sources: &HintSources) {
    let hint = Hint::read(response.headers(), sources, clock::wall);
    // A retry above reads, and tells, by itself.
    if Attempt::current().is_none() {
        observe::malformed(hint);
    }
    if let Some(pushback) = hint.pushback() {
        response.extensions_mut().insert(pushback);
    }
}
