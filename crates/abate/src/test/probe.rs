use std::mem;
use std::task::{Context, Poll, ready};

use tower_service::Service;

/// Any service, watched for being called as tower's services must be: only when that very instance
/// was ready, and once for each time that it was.
///
/// Put it below a layer of your own. A service that is always ready forgives a layer that calls a
/// clone of the readied one, or readies once and calls twice; a `ConcurrencyLimit` or a `Buffer`
/// below does not. (A [`Dependency`](super::Dependency) watches in the same way by itself.)
///
/// # Panics
///
/// Its `call` does, when it was not ready. A clone is not.
///
/// # Examples
///
/// ```
/// use abate::test::Probe;
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tower::BoxError> {
/// let probe = Probe::new(service_fn(async |n: u32| Ok::<_, tower::BoxError>(n + 1)));
/// let service = ServiceBuilder::new().map_request(|n: u32| n * 2).service(probe);
/// assert_eq!(service.oneshot(3).await?, 7);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Probe<S> {
    inner: S,
    reserved: Reserved,
}

impl<S> Probe<S> {
    /// Watches the calls of `inner`.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { inner, reserved: Reserved::default() }
    }
}

impl<S, R> Service<R> for Probe<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.reserved = Reserved::default();
        ready!(self.inner.poll_ready(cx))?;
        self.reserved.reserve();
        Poll::Ready(Ok(()))
    }

    #[track_caller]
    fn call(&mut self, request: R) -> S::Future {
        self.reserved.spend();
        self.inner.call(request)
    }
}

/// Whether an instance has said that it is ready. A clone has not.
#[derive(Debug, Default)]
pub(super) struct Reserved(bool);

impl Reserved {
    pub(super) const fn reserve(&mut self) {
        self.0 = true;
    }

    #[track_caller]
    pub(super) fn spend(&mut self) {
        assert!(mem::take(&mut self.0), "called without being ready");
    }
}

impl Clone for Reserved {
    fn clone(&self) -> Self {
        Self::default()
    }
}
