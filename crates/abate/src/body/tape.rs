use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::reel::Reel;

/// The stream of a request for as long as another attempt may need it: the call holds it, and each
/// attempt reads it, one after the other.
///
/// An attempt that has an answer may still be reading (a server can answer before it has the whole
/// request, RFC 9113 section 8.1), in a task of the client's. The next one waits until that lets
/// go, so there never are two readers.
pub(crate) struct Tape<B: Body>(Arc<Shared<B>>);

/// The one who reads a [`Tape`] at present.
pub(super) struct Reader<B: Body>(Arc<Shared<B>>);

struct Shared<B: Body> {
    /// Locked by the reader alone, or by nobody while there is one: no one waits for this lock, and the
    /// body within may do as it likes when it is polled. Poisoned once the body has panicked.
    reel: Mutex<Reel<B>>,
    /// Never locked for longer than it takes to look.
    state: Mutex<State>,
}

struct State {
    is_read: bool,
    is_recorded: bool,
    waiting: Option<Waker>,
}

impl<B: Body<Data = Bytes> + Unpin> Tape<B> {
    /// Whether what was read so far can be read again.
    pub(crate) fn is_recorded(&self) -> bool {
        lock(&self.0.state).is_recorded && !self.0.reel.is_poisoned()
    }

    /// Ready when nobody reads.
    pub(crate) fn poll_free(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0.state);
        if !state.is_read {
            return Poll::Ready(());
        }
        match &mut state.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            waiting => *waiting = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Begins again; `None` while someone reads, or if there is no record of what was read.
    pub(super) fn read_again(&self) -> Option<Reader<B>> {
        if !self.is_recorded() {
            return None;
        }
        let mut state = lock(&self.0.state);
        if state.is_read {
            return None;
        }
        state.is_read = true;
        lock(&self.0.reel).rewind();
        Some(Reader(Arc::clone(&self.0)))
    }
}

impl<B: Body<Data = Bytes> + Unpin> Reader<B> {
    pub(super) fn new(reel: Reel<B>) -> Self {
        let state = State { is_read: true, is_recorded: reel.is_recorded(), waiting: None };
        Self(Arc::new(Shared { reel: Mutex::new(reel), state: Mutex::new(state) }))
    }

    /// For others to read after this one; `None` if they cannot.
    pub(super) fn tape(&self) -> Option<Tape<B>> {
        lock(&self.0.state).is_recorded.then(|| Tape(Arc::clone(&self.0)))
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        // Once the call is over nobody will want to read again.
        let wanted = Arc::strong_count(&self.0) > 1;
        let mut reel = lock(&self.0.reel);
        let was_recorded = reel.is_recorded();
        let frame = reel.poll_frame(cx, wanted);
        if was_recorded && !reel.is_recorded() {
            lock(&self.0.state).is_recorded = false;
        }
        frame
    }

    pub(super) fn is_end_stream(&self) -> bool {
        lock(&self.0.reel).is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        lock(&self.0.reel).size_hint()
    }
}

impl<B: Body> Drop for Reader<B> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_read = false;
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

/// What a panic has left in a reel is still handed on by who reads it, and never again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<B: Body> fmt::Debug for Tape<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tape")
    }
}
