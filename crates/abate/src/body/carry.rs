//! How an answer goes up through the layers.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use http_body::Body;

use super::held::Held;
use super::response::ResponseBody;
use crate::error::{BoxError, Error};

/// Where an answer is put, once, by the lowest of our layers: those above look at it there, and none
/// moves it. Pending until then.
pub type Slot<B> = Poll<Result<Response<B>, Error>>;

/// The future of a layer of ours, which can put its answer into a [`Slot`].
pub trait Answer {
    /// The body of the response.
    type Body;

    /// As `poll`, into a slot.
    fn poll_into(self: Pin<&mut Self>, cx: &mut Context<'_>, slot: &mut Slot<Self::Body>);
}

/// `poll` of a future that is an [`Answer`].
#[inline]
pub(crate) fn poll_answer<F: Answer>(call: Pin<&mut F>, cx: &mut Context<'_>) -> Slot<F::Body> {
    let mut slot = Poll::Pending;
    call.poll_into(cx, &mut slot);
    slot
}

/// How a layer gets the answer of the call `F` below it.
pub trait Relay<F>: sealed::Sealed {
    /// The body that is handed on.
    type Body: Body;

    /// As `poll`, into a slot.
    fn poll_into(call: Pin<&mut F>, cx: &mut Context<'_>, slot: &mut Slot<Self::Body>);
}

/// A [`Relay`] for a layer that lets the body hold something.
pub trait Carry<F>: Relay<F> {
    /// What `body` holds. `None` once it is at its end, when there is nothing to hold anything for:
    /// some readers never poll such a body.
    fn held(body: &mut Self::Body) -> Option<&mut Held>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Pass {}
    impl Sealed for super::Wrap {}
    impl Sealed for super::Merge {}
}

/// Below is anything at all, and its body is handed on as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass;

impl<F, B, E> Relay<F> for Pass
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    E: Into<BoxError> + 'static,
{
    type Body = B;

    #[inline]
    fn poll_into(call: Pin<&mut F>, cx: &mut Context<'_>, slot: &mut Slot<B>) {
        match call.poll(cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(response)) => *slot = Poll::Ready(Ok(response)),
            Poll::Ready(Err(error)) => *slot = Poll::Ready(Err(Error::from_inner(error))),
        }
    }
}

/// Below is anything at all, and its body is wrapped in a [`ResponseBody`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Wrap;

impl<F, B, E> Relay<F> for Wrap
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    B::Error: Into<BoxError> + 'static,
    E: Into<BoxError> + 'static,
{
    type Body = ResponseBody<B>;

    #[inline]
    fn poll_into(call: Pin<&mut F>, cx: &mut Context<'_>, slot: &mut Slot<ResponseBody<B>>) {
        match call.poll(cx) {
            Poll::Pending => {}
            Poll::Ready(Ok(response)) => *slot = Poll::Ready(Ok(response.map(ResponseBody::new))),
            Poll::Ready(Err(error)) => *slot = Poll::Ready(Err(Error::from_inner(error))),
        }
    }
}

impl<F, B, E> Carry<F> for Wrap
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
    B::Error: Into<BoxError> + 'static,
    E: Into<BoxError> + 'static,
{
    #[inline]
    fn held(body: &mut ResponseBody<B>) -> Option<&mut Held> {
        body.held()
    }
}

/// Below is another layer of the same [`Stack`](crate::Stack): the one [`ResponseBody`] that the
/// lowest of them made holds what each of them has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Merge;

impl<F, B> Relay<F> for Merge
where
    F: Answer<Body = ResponseBody<B>>,
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    type Body = ResponseBody<B>;

    #[inline]
    fn poll_into(call: Pin<&mut F>, cx: &mut Context<'_>, slot: &mut Slot<ResponseBody<B>>) {
        call.poll_into(cx, slot);
    }
}

impl<F, B> Carry<F> for Merge
where
    F: Answer<Body = ResponseBody<B>>,
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    #[inline]
    fn held(body: &mut ResponseBody<B>) -> Option<&mut Held> {
        body.held()
    }
}
