use std::time::Duration;

use tower_layer::Layer;

use super::AttemptTimeout;
use super::terms::Terms;

/// Ends attempts that take longer than a given time; see the [module](crate::attempt_timeout).
#[derive(Debug, Clone, Copy)]
pub struct AttemptTimeoutLayer {
    terms: Terms,
}

impl AttemptTimeoutLayer {
    /// Ends an attempt whose response head is not there after `timeout`.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { terms: Terms { timeout, covers_body: false } }
    }

    /// Covers the response body as well: one that is not at its end in time ends with an error.
    #[must_use]
    pub const fn covering_body(mut self) -> Self {
        self.terms.covers_body = true;
        self
    }
}

impl<S> Layer<S> for AttemptTimeoutLayer {
    type Service = AttemptTimeout<S>;

    fn layer(&self, inner: S) -> AttemptTimeout<S> {
        AttemptTimeout::new(inner, self.terms)
    }
}
