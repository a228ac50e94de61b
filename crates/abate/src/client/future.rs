//! The future of a call of the ready-made client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project::pin_project;
use tower_service::Service;

use super::body::Body;
use super::decoded::Decoded;
use super::wired::Wired;
use crate::error::Error;

/// The future of [`Client`](super::Client).
///
/// # Cancel safety
///
/// Dropping it drops the call: whatever its layers held for it goes back.
#[pin_project]
pub struct ResponseFuture(#[pin] <Wired as Service<Request<Body>>>::Future);

impl ResponseFuture {
    pub(super) const fn new(inner: <Wired as Service<Request<Body>>>::Future) -> Self {
        Self(inner)
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Decoded>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().0.poll(cx).map_ok(|response| response.map(Decoded::new))
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
