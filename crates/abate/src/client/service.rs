use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_http::decompression::Decompression;
use tower_http::follow_redirect::FollowRedirect;
use tower_layer::Layer;
use tower_service::Service;

use super::body::Body;
use super::decoded::Decoded;
use super::future::ResponseFuture;
use super::redirect::{Redirects, Replayed};
use super::wired::{Hyper, Wired};
use crate::budget::BudgetHandle;
use crate::circuit_breaker::BreakerHandle;
use crate::concurrency_limit::ConcurrencyLimitHandle;
use crate::error::Error;
use crate::stack::Stack;

/// An HTTP client with all that is in a [`Stack`] around it; see the [module](mod@crate::client).
///
/// Clones share connections, budget, breakers and limit: make one, and clone it.
#[derive(Clone)]
pub struct Client {
    inner: Wired,
    stack: Arc<Stack>,
}

impl Client {
    pub(super) fn new(stack: Stack, redirects: Redirects, hyper: Hyper) -> Self {
        let followed = Replayed::new(FollowRedirect::with_policy(hyper, redirects));
        Self { inner: Decompression::new(stack.layer(followed)), stack: Arc::new(stack) }
    }

    /// Calls, without the two steps of a [`Service`].
    ///
    /// # Errors
    ///
    /// As the [module](mod@crate::client) says.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the call.
    pub fn request<B: Into<Body>>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Result<Response<Decoded>, Error>> + Send + use<B> {
        let (mut client, request) = (self.clone(), request.map(Into::into));
        async move {
            poll_fn(|cx| client.poll_ready(cx)).await?;
            client.call(request).await
        }
    }

    /// Tells where the breakers stand; there is one for each authority, such as `stock:8080`.
    #[must_use]
    pub fn breaker(&self) -> BreakerHandle {
        self.stack.breaker()
    }

    /// Tells what the retry budget holds.
    #[must_use]
    pub fn budget(&self) -> Option<BudgetHandle> {
        self.stack.budget()
    }

    /// Tells how many calls are in flight.
    #[must_use]
    pub fn limit(&self) -> ConcurrencyLimitHandle {
        self.stack.limit()
    }
}

impl Service<Request<Body>> for Client {
    type Response = Response<Decoded>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.inner, cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        ResponseFuture::new(self.inner.call(request))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stack", &self.stack).finish_non_exhaustive()
    }
}
