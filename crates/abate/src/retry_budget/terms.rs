use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use abate_core::classify::Classifier;
use http::{HeaderName, Request};

use crate::budget::BudgetHandle;
use crate::context::Attempt;
use crate::observe;

/// After this many failures without a single mark it is told that nobody seems to mark repeats.
const FAILURES_WITHOUT_MARK: u32 = 20;

/// What a layer decides by.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) budget: BudgetHandle,
    pub(super) classifier: Classifier,
    pub(super) header: Option<HeaderName>,
    /// Failures seen while no repeat was ever marked; past the limit once one was, or it was told.
    unmarked: AtomicU32,
}

impl Terms {
    pub(super) const fn new(
        budget: BudgetHandle,
        classifier: Classifier,
        header: Option<HeaderName>,
    ) -> Self {
        Self { budget, classifier, header, unmarked: AtomicU32::new(0) }
    }

    /// A first attempt failed: a retry above would repeat it now, and mark it.
    pub(super) fn note_failure(&self) {
        // Relaxed: a count that has an effect once.
        if self.unmarked.load(Relaxed) <= FAILURES_WITHOUT_MARK
            && self.unmarked.fetch_add(1, Relaxed) == FAILURES_WITHOUT_MARK
        {
            observe::unmarked();
        }
    }

    /// Something above counts attempts, so there is nothing to be told.
    pub(super) fn note_mark(&self) {
        // Relaxed: a count that has an effect once; read first, to leave the line to others.
        if self.unmarked.load(Relaxed) != u32::MAX {
            // Relaxed: as above.
            self.unmarked.store(u32::MAX, Relaxed);
        }
    }

    /// Which attempt a request is, if anything tells.
    pub(super) fn attempt<B>(&self, request: &Request<B>) -> Option<Attempt> {
        let marked = request.extensions().get::<Attempt>().copied().or_else(Attempt::current);
        marked.or_else(|| {
            let value = request.headers().get(self.header.as_ref()?)?;
            value.to_str().ok()?.trim().parse().ok().map(Attempt::new)
        })
    }
}
