use std::time::Duration;

use tower_layer::Layer;

use super::GrpcStatus;

/// 50 ms: what belongs to the head is right behind it, in the same packet as a rule, and a network
/// that loses its way for once has this long; nobody misses it at the head of a silent stream.
pub const LOOK_AHEAD: Duration = Duration::from_millis(50);

/// Looks for the outcome of a gRPC call behind the head of its answer; see the
/// [module](crate::grpc).
#[derive(Debug, Clone, Copy)]
pub struct GrpcStatusLayer {
    look_ahead: Duration,
}

impl GrpcStatusLayer {
    /// Waits [`LOOK_AHEAD`] for the first frame.
    #[must_use]
    pub const fn new() -> Self {
        Self { look_ahead: LOOK_AHEAD }
    }

    /// Waits `at_most` for the first frame, from the arrival of the head; not at all if that is zero:
    /// then it is looked at if it is there already.
    #[must_use]
    pub const fn with_look_ahead(mut self, at_most: Duration) -> Self {
        self.look_ahead = at_most;
        self
    }
}

impl Default for GrpcStatusLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for GrpcStatusLayer {
    type Service = GrpcStatus<S>;

    fn layer(&self, inner: S) -> GrpcStatus<S> {
        GrpcStatus::new(inner, self.look_ahead)
    }
}
