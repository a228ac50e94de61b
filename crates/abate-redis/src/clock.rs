//! The one place that reads a clock.

use std::time::Instant;

/// Tokio's clock, by which every timeout here runs.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
