//! Everything that is told to the outside goes through here: one `tracing` event for each retry,
//! refusal, stop and transition, and nothing for a call that succeeds at once.

use std::time::Duration;

use abate_core::backoff::DelaySource;
use abate_core::breaker::{State, Transition};
use abate_core::classify::Transient;
use abate_core::fleet::StoreError;
use abate_core::retry_after::Hint;
use abate_core::session::StopReason;

use crate::error::{Error, ErrorKind};
use crate::report::TriedResult;

/// An attempt failed and another will be made.
pub(crate) fn retry(
    attempt: u32,
    result: TriedResult,
    why: Transient,
    after: Duration,
    source: DelaySource,
) {
    let delay_ms = after.as_secs_f64() * 1e3;
    tracing::debug!(attempt, outcome = %result, ?why, delay_ms, ?source, "retrying");
}

/// A call ends without success, and there is a reason why it is not tried again.
pub(crate) fn stopped(attempts: u32, reason: StopReason) {
    tracing::debug!(attempts, reason = reason.as_str(), "stopped retrying");
}

/// A retry layer above does the retrying already.
pub(crate) fn stood_down() {
    tracing::warn!("a retry layer above this one retries already; this one stands down");
}

/// A request was to get an idempotency key where each attempt would get another one.
pub(crate) fn key_below_retry() {
    tracing::warn!(
        "no idempotency key below a retry, where each attempt would get another one: put \
         `IdempotencyKeyLayer` above the retry"
    );
}

/// Failures come and no repeat is ever marked.
pub(crate) fn unmarked() {
    tracing::warn!(
        "no retry above marks its repeats, so this budget limits nothing: insert `abate::Attempt`"
    );
}

/// The store of a fleet's budgets answered before, and does not any more. What is wrong with it, the
/// store itself tells people.
pub(crate) fn store_failed(error: &StoreError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::debug!(cause, "{error}: this process retries with what it earns by itself");
}

/// The store of a fleet's budgets answers again.
pub(crate) fn store_answers() {
    tracing::debug!("the budget store answers again");
}

/// A layer refused a call by itself.
pub(crate) fn refused(error: &Error) {
    match error.kind() {
        ErrorKind::BreakerOpen => tracing::debug!(retry_at = ?error.retry_at(), "refused: breaker"),
        kind => tracing::debug!(?kind, "refused"),
    }
}

/// A call or an attempt was ended because its time was up.
pub(crate) fn ended(error: &Error) {
    tracing::debug!(kind = ?error.kind(), "ended");
}

/// A server's hint could not be read.
pub(crate) fn malformed(hint: Hint) {
    if hint.is_malformed() {
        tracing::debug!("hint ignored: the header is malformed");
    }
}

/// A breaker changed its state.
#[inline]
pub(crate) fn transition(transition: Option<Transition>) {
    if let Some(transition) = transition {
        moved(transition);
    }
}

#[cold]
fn moved(Transition { from, to, open_for }: Transition) {
    match (to, open_for) {
        (State::Open, Some(open_for)) => {
            let open_ms = open_for.as_secs_f64() * 1e3;
            tracing::warn!(%from, %to, open_ms, "circuit breaker opened");
        }
        (State::ObserveOnly, Some(open_for)) => {
            let open_ms = open_for.as_secs_f64() * 1e3;
            tracing::warn!(%from, %to, open_ms, "circuit breaker would have opened");
        }
        _ => tracing::info!(%from, %to, "circuit breaker moved"),
    }
}
