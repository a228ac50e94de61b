//! A timer that costs nothing until it has to be waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use abate_core::deadline::Deadline;
use pin_project::pin_project;
use tokio::time::{Sleep, sleep_until};

/// Ends at a deadline. Registered when it is first polled, which is when what it limits was
/// pending; a deadline of [`Deadline::NEVER`] registers nothing.
#[pin_project]
#[derive(Debug)]
pub(crate) struct Timer {
    end: Deadline,
    #[pin]
    sleep: Option<Sleep>,
}

impl Timer {
    pub(crate) const fn new(end: Deadline) -> Self {
        Self { end, sleep: None }
    }

    /// Ready once the deadline has passed.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(end) = this.end.instant() else { return Poll::Pending };
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(end.into())));
        }
        match this.sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Pending,
        }
    }
}
