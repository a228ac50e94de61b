use std::time::Duration;

use tower_layer::Layer;

use super::BufferedResponse;
use super::terms::Terms;

/// Reads response bodies ahead; see the [module](crate::buffered_response).
#[derive(Debug, Clone, Copy)]
pub struct BufferedResponseLayer {
    terms: Terms,
}

impl BufferedResponseLayer {
    /// One mebibyte: what is longer is seldom read into memory as one piece, and a hundred calls in
    /// flight hold 100 MiB at the most.
    pub const DEFAULT_CAP: usize = 1024 * 1024;

    /// Ten seconds: as long as a head has in [`Stack`](crate::Stack). It is what the whole cap takes
    /// at 100 KiB/s; a dependency that is slower than that is in trouble.
    pub const DEFAULT_READ_TIMEOUT: Duration = Duration::from_secs(10);

    /// Reads bodies of up to `cap` bytes; none, where it is 0.
    #[must_use]
    pub const fn new(cap: usize) -> Self {
        Self { terms: Terms { cap, read_timeout: Self::DEFAULT_READ_TIMEOUT } }
    }

    /// The longest that a body may take, from its head on. An attempt whose body has neither ended
    /// nor passed the cap by then has failed.
    #[must_use]
    pub const fn with_read_timeout(mut self, timeout: Duration) -> Self {
        self.terms.read_timeout = timeout;
        self
    }
}

/// With [`DEFAULT_CAP`](BufferedResponseLayer::DEFAULT_CAP).
impl Default for BufferedResponseLayer {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAP)
    }
}

impl<S> Layer<S> for BufferedResponseLayer {
    type Service = BufferedResponse<S>;

    fn layer(&self, inner: S) -> BufferedResponse<S> {
        BufferedResponse::new(inner, self.terms)
    }
}
