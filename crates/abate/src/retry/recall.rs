//! After an attempt whose request streamed: wait until it lets go of the body.

use std::mem;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use abate_core::deadline::Deadline;
use abate_core::retry_after::Pushback;
use abate_core::session::{Retry, Session};
use bytes::Bytes;
use http_body::Body;

use crate::body::{Slot, Tape};
use crate::timer::Timer;

/// A client lets go of a body when its connection is polled next, which is at once but not the
/// same moment: a retry without a backoff waits that long too. It is also what a response may be
/// held for meanwhile, with its connection and its permit, like one that is drained.
const RECALL_TIME: Duration = Duration::from_millis(50);

/// A retry that was granted and needs the body back, and the answer to hand on if it does not come:
/// nothing is discarded before.
pub(super) struct Recall<ResBody> {
    retry: Option<Retry>,
    answer: Slot<ResBody>,
    timer: Timer,
}

impl<ResBody: Body> Recall<ResBody> {
    pub(super) fn new(
        now: Instant,
        session: &Session,
        retry: Retry,
        slot: &mut Slot<ResBody>,
    ) -> Self {
        let answer = mem::replace(slot, Poll::Pending);
        let soon = now + RECALL_TIME;
        let until = match &answer {
            Poll::Ready(Ok(response)) if !response.body().is_end_stream() => soon,
            _ => soon.max(retry.at),
        };
        let until = if session.has_time(until) { until } else { until.min(retry.at) };
        Self { retry: Some(retry), answer, timer: Timer::new(Deadline::at(until)) }
    }

    /// Ready when the body is free or is waited for no longer: gives back the retry, and the answer
    /// into the slot.
    pub(super) fn poll<B>(
        &mut self,
        cx: &mut Context<'_>,
        tape: Option<&Tape<B>>,
        slot: &mut Slot<ResBody>,
    ) -> Poll<Option<Retry>>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let is_read = tape.is_some_and(|tape| tape.poll_free(cx).is_pending());
        if is_read && self.timer.poll(cx).is_pending() {
            return Poll::Pending;
        }
        *slot = mem::replace(&mut self.answer, Poll::Pending);
        Poll::Ready(self.retry.take())
    }
}

/// When the server wants to be called again, where it said so.
pub(super) fn wished_for(retry: &Retry) -> Option<Instant> {
    let wish = retry.hint.pushback().map(Pushback::delay).filter(|delay| !delay.is_zero())?;
    retry.at.checked_sub(retry.after)?.checked_add(wish)
}
