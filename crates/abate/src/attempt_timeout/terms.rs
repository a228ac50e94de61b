use std::time::{Duration, Instant};

use abate_core::deadline::Deadline;

use crate::error::ErrorKind;

/// What a layer is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) timeout: Duration,
    pub(super) covers_body: bool,
}

impl Terms {
    /// When an attempt ends that begins at `now`, and what it is then.
    pub(super) fn end(self, now: Instant, deadline: Deadline) -> (Deadline, ErrorKind) {
        let own = Deadline::after(now, self.timeout);
        if own == deadline.earlier(own) {
            (own, ErrorKind::AttemptTimeout)
        } else {
            (deadline, ErrorKind::Deadline)
        }
    }
}
