//! The one place that reads a clock.

use std::time::{Instant, SystemTime};

/// Tokio's clock, so that paused time in tests is the time of everything here.
#[inline]
#[expect(clippy::disallowed_methods, reason = "the one place that reads a clock")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The wall clock, for server dates that come without a `Date`.
#[expect(clippy::disallowed_methods, reason = "the one place that reads a clock")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
