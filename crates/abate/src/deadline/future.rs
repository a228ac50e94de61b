//! The future of a call that ends by its deadline.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use http::Response;
use pin_project::pin_project;

use crate::body::{Carry, Held, Wrap};
use crate::context::{self, Scope};
use crate::error::{BoxError, Error, ErrorKind};
use crate::observe;
use crate::timer::Timer;

/// The future of [`Deadlined`](super::Deadlined).
///
/// # Cancel safety
///
/// Dropping it drops the call.
#[pin_project]
pub struct ResponseFuture<F, M = Wrap> {
    /// `None` when the deadline had passed already.
    #[pin]
    inner: Option<F>,
    #[pin]
    timer: Timer,
    end: Deadline,
    covers_body: bool,
    carry: PhantomData<fn() -> M>,
}

impl<F, M> ResponseFuture<F, M> {
    pub(super) const fn new(inner: F, end: Deadline, covers_body: bool) -> Self {
        Self { inner: Some(inner), timer: Timer::new(end), end, covers_body, carry: PhantomData }
    }

    pub(super) const fn passed(end: Deadline) -> Self {
        Self { inner: None, timer: Timer::new(end), end, covers_body: false, carry: PhantomData }
    }
}

impl<F, B, E, M> Future for ResponseFuture<F, M>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError> + 'static,
    M: Carry<B>,
{
    type Output = Result<Response<M::Body>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(inner) = this.inner.as_mut().as_pin_mut() {
            let scope = Scope::poll();
            let _deadline = scope.set_deadline(*this.end);
            if let Poll::Ready(result) = inner.poll(cx) {
                let held = Held::end(*this.covers_body, *this.end, ErrorKind::Deadline);
                return Poll::Ready(match result {
                    Ok(response) => Ok(M::carry(response, held)),
                    Err(error) => Err(Error::from_inner(error)),
                });
            }
            if this.timer.poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        // The call ends here and now, also if this future is kept for a while.
        let report = context::ending(|| this.inner.set(None));
        let mut error = Error::new(ErrorKind::Deadline);
        if let Some(report) = report {
            error = error.with_report(report);
        }
        observe::ended(&error);
        Poll::Ready(Err(error))
    }
}

impl<F: fmt::Debug, M> fmt::Debug for ResponseFuture<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("inner", &self.inner)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
