use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tower_layer::Layer;

use super::Deadlined;
use crate::body::{Merge, Wrap};

/// Ends calls that take longer than a given time; see the [module](crate::deadline).
pub struct DeadlineLayer<M = Wrap> {
    timeout: Duration,
    covers_body: bool,
    carry: PhantomData<fn() -> M>,
}

impl DeadlineLayer {
    /// Ends a call whose response head is not there after `timeout`.
    #[must_use]
    pub const fn new(timeout: Duration) -> Self {
        Self { timeout, covers_body: false, carry: PhantomData }
    }

    pub(crate) const fn merging(self) -> DeadlineLayer<Merge> {
        DeadlineLayer { timeout: self.timeout, covers_body: self.covers_body, carry: PhantomData }
    }
}

impl<M> DeadlineLayer<M> {
    /// Covers the response body as well: one that is not at its end in time ends with an error.
    #[must_use]
    pub const fn covering_body(mut self) -> Self {
        self.covers_body = true;
        self
    }
}

impl<S, M> Layer<S> for DeadlineLayer<M> {
    type Service = Deadlined<S, M>;

    fn layer(&self, inner: S) -> Deadlined<S, M> {
        Deadlined::new(inner, self.timeout, self.covers_body)
    }
}

impl<M> Clone for DeadlineLayer<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for DeadlineLayer<M> {}

impl<M> fmt::Debug for DeadlineLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineLayer").field("timeout", &self.timeout).finish()
    }
}
