//! The future of a dependency by script.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use abate_core::outcome::Fault;
use bytes::{BufMut, BytesMut};
use http::Response;
use http_body::Body;
use pin_project::pin_project;
use tokio::time::{Sleep, sleep};

use super::answer::{Answer, AnswerBody, End};
use super::record::Record;
use crate::error::BoxError;
use crate::fault::Known;

/// The future of [`Dependency`](super::Dependency).
///
/// # Cancel safety
///
/// Dropping it gives the answer to nobody; the request stays recorded.
///
/// # Errors
///
/// What the script says; [`Fault::Permanent`] where the request's own body fails.
#[pin_project]
pub struct ResponseFuture<B> {
    /// `None` once it was read to its end.
    #[pin]
    body: Option<B>,
    data: BytesMut,
    record: Record,
    place: usize,
    #[pin]
    delay: Option<Sleep>,
    /// `None` once it was given.
    answer: Option<Answer>,
}

impl<B> ResponseFuture<B> {
    pub(super) fn new(body: B, record: Record, place: usize, answer: Option<Answer>) -> Self {
        Self { body: Some(body), data: BytesMut::new(), record, place, delay: None, answer }
    }
}

impl<B> Future for ResponseFuture<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<AnswerBody>, Known>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        while let Some(body) = this.body.as_mut().as_pin_mut() {
            match ready!(body.poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.data.put(data);
                    }
                }
                Some(Err(error)) => {
                    *this.answer = None;
                    return Poll::Ready(Err(Known::new(Fault::Permanent).with_source(error)));
                }
                None => {
                    this.record.set_body(*this.place, mem::take(this.data).freeze());
                    this.body.set(None);
                    let delay = this.answer.as_ref().map(|answer| answer.delay);
                    this.delay.set(delay.filter(|delay| !delay.is_zero()).map(sleep));
                }
            }
        }
        if let Some(delay) = this.delay.as_mut().as_pin_mut() {
            ready!(delay.poll(cx));
            this.delay.set(None);
        }
        match this.answer.take().map(|answer| answer.end) {
            Some(End::Response(response)) => Poll::Ready(Ok(response)),
            Some(End::Fault(fault)) => Poll::Ready(Err(Known::new(fault))),
            Some(End::Hang) | None => Poll::Pending,
        }
    }
}

impl<B> fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("answer", &self.answer).finish_non_exhaustive()
    }
}
