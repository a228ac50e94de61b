use std::time::Duration;

use tower_layer::Layer;

use super::AttemptTimeout;

/// Ends attempts that take longer than a given time; see the [module](crate::attempt_timeout).
#[derive(Debug, Clone, Copy)]
pub struct AttemptTimeoutLayer {
    timeout: Duration,
}

impl AttemptTimeoutLayer {
    /// Ends an attempt whose response head is not there after `timeout`.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout }
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout::new(inner, self.timeout)
    }
}
