//! What a thread keeps of the calls that ended, for those to come.

use std::cell::RefCell;
use std::fmt;

use super::call::Call;

/// How many calls a thread keeps, and the largest that is worth it: 4 MiB at the most, and some
/// hundred kilobytes as a rule.
const POOLED: usize = 256;
const LARGEST_POOLED: usize = 16 * 1024;

thread_local! {
    #[expect(clippy::vec_box, reason = "a box goes in and out of a future, its content stays")]
    static POOL: RefCell<Vec<Box<Call>>> = const { RefCell::new(Vec::new()) };
}

/// The state of a call, in a box that goes back to the pool of the thread where it ends.
///
/// So a call costs its future one pointer, and the moves of the future next to nothing, without an
/// allocation for each call.
pub(super) struct Pooled(Option<Box<Call>>);

impl Pooled {
    /// A call of the past, cleared, or a new one. A thread that is ending has no pool any more.
    #[inline]
    pub(super) fn take(new: impl FnOnce() -> Call) -> Box<Call> {
        let pooled = POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten();
        pooled.unwrap_or_else(|| Box::new(new()))
    }

    pub(super) const fn new(call: Box<Call>) -> Self {
        Self(Some(call))
    }

    pub(super) const fn get(&mut self) -> Option<&mut Box<Call>> {
        self.0.as_mut()
    }
}

impl Drop for Pooled {
    #[inline]
    fn drop(&mut self) {
        let Some(mut call) = self.0.take() else { return };
        call.clear();
        if call.bytes() <= LARGEST_POOLED {
            let _ = POOL.try_with(|pool| {
                let pool = &mut *pool.borrow_mut();
                if pool.len() < POOLED {
                    pool.push(call);
                }
            });
        }
    }
}

impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
