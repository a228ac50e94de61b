use tower_layer::Layer;

use super::RetryAfter;

/// Publishes `Retry-After` as a [`Pushback`](crate::Pushback); see the
/// [module](crate::retry_after).
#[derive(Debug, Clone, Default)]
pub struct RetryAfterLayer(());

impl RetryAfterLayer {
    /// The layer; it has no settings.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for RetryAfterLayer {
    type Service = RetryAfter<S>;

    fn layer(&self, inner: S) -> RetryAfter<S> {
        RetryAfter::new(inner)
    }
}
