use http::Response;
use http_body::Body;

use super::guard::Held;
use super::response::ResponseBody;
use crate::error::BoxError;

/// How a layer hands a response body on, together with what it must hold.
///
/// A layer on its own wraps the body of the service below, whatever that is. Layers that are
/// stacked by [`Stack`](crate::Stack) merge what they hold into the one wrapper that the lowest
/// of them made, so that the type of the body does not grow with the number of layers.
pub trait Carry<B>: sealed::Sealed {
    /// The body that is handed on.
    type Body: Body;

    /// Lets the body of `response` hold what is `held`.
    fn carry(response: Response<B>, held: Held) -> Response<Self::Body>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Wrap {}
    impl Sealed for super::Merge {}
}

/// Wraps the body of the service below in a [`ResponseBody`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Wrap;

impl<B> Carry<B> for Wrap
where
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    type Body = ResponseBody<B>;

    #[inline]
    fn carry(response: Response<B>, held: Held) -> Response<ResponseBody<B>> {
        response.map(|body| ResponseBody::new(body, held))
    }
}

/// Uses the [`ResponseBody`] that the service below has made already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Merge;

impl<B> Carry<ResponseBody<B>> for Merge
where
    B: Body,
    B::Error: Into<BoxError> + 'static,
{
    type Body = ResponseBody<B>;

    #[inline]
    fn carry(mut response: Response<ResponseBody<B>>, held: Held) -> Response<ResponseBody<B>> {
        response.body_mut().hold(held);
        response
    }
}
