use std::fmt;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::desk::Desk;
use super::grant::Grant;
use super::ledger::Ledger;
use super::rules::{Denied, Rules, TAU};
use crate::classify::Transient;

/// A retry budget; clones share it.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use abate_core::budget::Budget;
/// use abate_core::classify::Transient;
/// use abate_core::policy::Policy;
///
/// let now = Instant::now();
/// let budget = Budget::new(Policy::default().budget(), now);
///
/// budget.count_call(now);
/// let mut grant = budget.grant(now, Duration::ZERO, Duration::MAX, Transient::Server).expect("a fresh token");
/// assert_eq!(grant.slot(now, Duration::MAX), Ok(Duration::ZERO));
/// grant.sent();
/// assert_eq!(budget.tokens(now), 1.0);
/// ```
#[derive(Clone)]
pub struct Budget {
    ledger: Arc<Ledger>,
}

impl Budget {
    /// A budget that begins at `now`.
    #[must_use]
    pub fn new(rules: Rules, now: Instant) -> Self {
        Self { ledger: Arc::new(Ledger::new(rules, None, now)) }
    }

    /// One process's part in a budget of many: it has no floor and no start of its own, and what it
    /// cannot pay for by itself it asks of the others, at a desk that `fleet` serves.
    pub(crate) fn with_desk(rules: Rules, interval: Duration, now: Instant) -> (Self, Arc<Desk>) {
        let rules = Rules { floor: 0.0, start: 0.0, ..rules };
        let desk = Arc::new(Desk::new(interval, TAU));
        let ledger = Ledger::new(rules, Some(Arc::clone(&desk)), now);
        (Self { ledger: Arc::new(ledger) }, desk)
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Counts a call, once, when its first attempt is sent at `now`.
    #[inline]
    pub fn count_call(&self, now: Instant) {
        self.ledger.count_call(now);
    }

    /// Earns for a call that succeeded, once per call, on whichever attempt.
    #[inline]
    pub fn earn(&self) {
        self.ledger.earn();
    }

    /// Asks for a retry because of `why` that is to be sent `delay` from `now`, with `left`
    /// remaining for it then.
    ///
    /// Takes what it costs; it returns when the grant is dropped unsent.
    ///
    /// # Errors
    ///
    /// [`Denied`] when there is no token, or no slot in time; nothing is taken then.
    pub fn grant(
        &self,
        now: Instant,
        delay: Duration,
        left: Duration,
        why: Transient,
    ) -> Result<Grant, Denied> {
        Grant::ask(Arc::clone(&self.ledger), now, delay, left, why)
    }

    /// The tokens in stock at `now`.
    #[must_use]
    pub fn tokens(&self, now: Instant) -> f64 {
        self.ledger.fold(now);
        self.ledger.tokens()
    }

    /// The retries that may be sent per second at `now`: `ratio × calls + floor`.
    #[must_use]
    pub fn pace(&self, now: Instant) -> f64 {
        self.ledger.fold(now);
        self.ledger.pace()
    }

    /// A number that is the same for clones, and no other budget's while one of them is alive.
    #[must_use]
    pub fn address(&self) -> NonZeroUsize {
        NonNull::from(&*self.ledger).addr()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("tokens", &self.ledger.tokens())
            .field("pace", &self.ledger.pace())
            .finish_non_exhaustive()
    }
}
