//! Is that a success, a failure, or neither?
//!
//! One classification serves the retry, the budget and the breaker, so that they cannot disagree.

use std::fmt;

use http::{HeaderMap, StatusCode};

use crate::outcome::{Fault, Outcome};

/// What an outcome means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// 1xx, 2xx, 3xx: done.
    Success,
    /// A 4xx that waiting does not change: the dependency works, the request does not.
    Rejected,
    /// A status that is retried, or a fault that another attempt may not meet again.
    Transient(Transient),
    /// An answer or a fault that another attempt would meet again: 501, an unknown host.
    Permanent,
    /// Ended on our own side: refused by a layer of ours, or cancelled by the caller.
    Ours(Fault),
}

/// Why another attempt may fare better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transient {
    /// The dependency is up and asks for patience: a retried 4xx such as 429.
    Asked,
    /// The dependency is in trouble: a retried 5xx.
    Server,
    /// Nothing reached it.
    Unsent,
    /// The connection broke or time ran out after sending.
    Ambiguous,
}

/// What an outcome says about the health of a dependency, for a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Health {
    /// It works.
    Success,
    /// It does not.
    Failure,
    /// It answered, which says that it is there and nothing of how it fares: 4xx with 429, 501.
    Answered,
    /// Nothing was learned: we refused the call ourselves, or the caller gave up.
    Unknown,
}

impl Verdict {
    /// Whether the outcome earns budget: everything but trouble does.
    #[must_use]
    pub const fn earns(self) -> bool {
        matches!(self, Self::Success | Self::Rejected)
    }
}

/// Judges a response by its status and headers; `None` leaves it to its status.
pub type Judge = fn(StatusCode, &HeaderMap) -> Option<Verdict>;

/// How outcomes are judged: by status, and by a [`Judge`] where that does not tell.
///
/// # Examples
///
/// A gateway that answers 200 with an error document when a quota is used up:
///
/// ```
/// use abate_core::classify::{Transient, Verdict};
/// use abate_core::policy::Policy;
///
/// let policy = Policy::builder()
///     .with_judge(|_, headers| {
///         let used_up = headers.get("x-ratelimit-remaining")?.as_bytes() == b"0";
///         used_up.then_some(Verdict::Transient(Transient::Asked))
///     })
///     .build()?;
/// # drop(policy);
/// # Ok::<(), abate_core::policy::PolicyError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Classifier {
    retried: Statuses,
    judge: Option<Judge>,
}

impl Classifier {
    /// Retries the statuses in `retried`, and no others.
    #[must_use]
    pub const fn new(retried: Statuses) -> Self {
        Self { retried, judge: None }
    }

    /// Asks `judge` first.
    #[must_use]
    pub const fn with_judge(mut self, judge: Judge) -> Self {
        self.judge = Some(judge);
        self
    }

    /// The statuses that are retried.
    #[must_use]
    pub const fn retried(&self) -> &Statuses {
        &self.retried
    }

    pub(crate) const fn retried_mut(&mut self) -> &mut Statuses {
        &mut self.retried
    }

    /// What `outcome` means.
    #[inline]
    #[must_use]
    pub fn verdict(&self, outcome: &Outcome<'_>) -> Verdict {
        match *outcome {
            Outcome::Response { status, headers } => {
                let judged = self.judge.and_then(|judge| judge(status, headers));
                judged.unwrap_or_else(|| self.by_status(status))
            }
            Outcome::Fault(Fault::Unsent) => Verdict::Transient(Transient::Unsent),
            Outcome::Fault(Fault::Ambiguous) => Verdict::Transient(Transient::Ambiguous),
            Outcome::Fault(Fault::Permanent) => Verdict::Permanent,
            Outcome::Fault(fault @ (Fault::Local | Fault::Cancelled)) => Verdict::Ours(fault),
        }
    }

    /// What `outcome` says about the dependency.
    #[inline]
    #[must_use]
    pub fn health(&self, outcome: &Outcome<'_>) -> Health {
        match (self.verdict(outcome), outcome) {
            (Verdict::Success, _) => Health::Success,
            (Verdict::Transient(why), _) if why != Transient::Asked => Health::Failure,
            (Verdict::Ours(_), _) | (_, Outcome::Fault(_)) => Health::Unknown,
            (_, Outcome::Response { .. }) => Health::Answered,
        }
    }

    #[inline]
    fn by_status(&self, status: StatusCode) -> Verdict {
        match status.as_u16() {
            ..400 => Verdict::Success,
            code @ 400..500 if self.retried.contains(code) => Verdict::Transient(Transient::Asked),
            400..500 => Verdict::Rejected,
            code if self.retried.contains(code) => Verdict::Transient(Transient::Server),
            _ => Verdict::Permanent,
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self::new(Statuses::TRANSIENT)
    }
}

impl PartialEq for Classifier {
    fn eq(&self, other: &Self) -> bool {
        let same = match (self.judge, other.judge) {
            (Some(own), Some(other)) => std::ptr::fn_addr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        same && self.retried == other.retried
    }
}

impl fmt::Debug for Classifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classifier")
            .field("retried", &self.retried)
            .field("judge", &self.judge.is_some())
            .finish()
    }
}

/// A set of statuses between 400 and 599.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Statuses([u64; 4]);

impl Statuses {
    /// No status at all.
    pub const NONE: Self = Self([0; 4]);

    /// Those that are retried unless a policy says otherwise: 408, 425, 429, 500, 502, 503, 504.
    pub const TRANSIENT: Self =
        Self::NONE.with(408).with(425).with(429).with(500).with(502).with(503).with(504);

    /// The same set with `code` in it; a code outside 400..=599 is left out.
    #[must_use]
    pub const fn with(mut self, code: u16) -> Self {
        if let Some((word, bit)) = Self::place(code) {
            self.0[word] |= bit;
        }
        self
    }

    /// The same set without `code`.
    #[must_use]
    pub const fn without(mut self, code: u16) -> Self {
        if let Some((word, bit)) = Self::place(code) {
            self.0[word] &= !bit;
        }
        self
    }

    /// Whether `code` is in the set.
    #[must_use]
    pub const fn contains(&self, code: u16) -> bool {
        match Self::place(code) {
            Some((word, bit)) => self.0[word] & bit != 0,
            None => false,
        }
    }

    /// The codes in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (400..600).filter(|code| self.contains(*code))
    }

    const fn place(code: u16) -> Option<(usize, u64)> {
        match code {
            400..600 => Some(((code - 400) as usize / 64, 1 << ((code - 400) % 64))),
            _ => None,
        }
    }
}

impl fmt::Debug for Statuses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSIFIER: Classifier = Classifier::new(Statuses::TRANSIENT);

    fn verdict(code: u16) -> Verdict {
        let headers = HeaderMap::new();
        let status = StatusCode::from_u16(code).unwrap();
        CLASSIFIER.verdict(&Outcome::Response { status, headers: &headers })
    }

    fn health(code: u16) -> Health {
        let headers = HeaderMap::new();
        let status = StatusCode::from_u16(code).unwrap();
        CLASSIFIER.health(&Outcome::Response { status, headers: &headers })
    }

    // CL-08
    #[test]
    fn a_4xx_that_waiting_does_not_change_earns_and_is_no_verdict_on_health() {
        for code in [400, 401, 403, 404, 409, 410, 417, 422, 451] {
            assert_eq!(verdict(code), Verdict::Rejected, "{code}");
            assert!(verdict(code).earns());
            assert_eq!(health(code), Health::Answered);
        }
    }

    // CL-01
    #[test]
    fn deterministic_5xx_are_permanent_and_say_nothing_of_health() {
        for code in [501, 505, 506, 507, 508, 510, 511, 520, 527, 529, 599] {
            assert_eq!(verdict(code), Verdict::Permanent, "{code}");
            assert!(!verdict(code).earns());
            assert_eq!(health(code), Health::Answered);
        }
    }

    #[test]
    fn trouble_is_a_failure_and_a_request_for_patience_is_not() {
        for code in [500, 502, 503, 504] {
            assert_eq!(verdict(code), Verdict::Transient(Transient::Server));
            assert_eq!(health(code), Health::Failure);
        }
        for code in [408, 425, 429] {
            assert_eq!(verdict(code), Verdict::Transient(Transient::Asked));
            assert_eq!(health(code), Health::Answered);
            assert!(!verdict(code).earns());
        }
    }

    #[test]
    fn redirects_and_odd_codes_below_400_are_successes() {
        for code in [100, 200, 204, 206, 301, 304, 399] {
            assert_eq!(verdict(code), Verdict::Success);
            assert_eq!(health(code), Health::Success);
        }
        assert_eq!(verdict(999), Verdict::Permanent);
    }

    #[test]
    fn faults_fall_into_their_classes() {
        let of = |fault| {
            let outcome = Outcome::Fault(fault);
            (CLASSIFIER.verdict(&outcome), CLASSIFIER.health(&outcome))
        };
        assert_eq!(of(Fault::Unsent), (Verdict::Transient(Transient::Unsent), Health::Failure));
        assert_eq!(
            of(Fault::Ambiguous),
            (Verdict::Transient(Transient::Ambiguous), Health::Failure)
        );
        assert_eq!(of(Fault::Permanent), (Verdict::Permanent, Health::Unknown));
        // TO-10
        assert_eq!(of(Fault::Cancelled), (Verdict::Ours(Fault::Cancelled), Health::Unknown));
        assert_eq!(of(Fault::Local), (Verdict::Ours(Fault::Local), Health::Unknown));
    }

    #[test]
    fn a_set_of_statuses_holds_exactly_what_was_put_in() {
        assert_eq!(
            CLASSIFIER.retried().iter().collect::<Vec<_>>(),
            [408, 425, 429, 500, 502, 503, 504]
        );
        assert!(!CLASSIFIER.retried().without(500).contains(500));
        assert_eq!(Statuses::NONE.with(200).with(600).with(0), Statuses::NONE);
    }

    // CL-05
    #[test]
    fn a_judge_decides_and_leaves_to_the_status_what_it_does_not_know() {
        fn used_up(_: StatusCode, headers: &HeaderMap) -> Option<Verdict> {
            let used_up = headers.get("x-ratelimit-remaining")?.as_bytes() == b"0";
            used_up.then_some(Verdict::Transient(Transient::Asked))
        }
        let classifier = CLASSIFIER.with_judge(used_up);
        let mut headers = HeaderMap::new();
        let verdict = |code, headers: &HeaderMap| {
            let status = StatusCode::from_u16(code).unwrap();
            classifier.verdict(&Outcome::Response { status, headers })
        };
        assert_eq!(verdict(200, &headers), Verdict::Success);
        assert_eq!(verdict(503, &headers), Verdict::Transient(Transient::Server));
        headers.insert("x-ratelimit-remaining", http::HeaderValue::from_static("0"));
        assert_eq!(verdict(200, &headers), Verdict::Transient(Transient::Asked));
        assert_eq!(classifier, CLASSIFIER.with_judge(used_up));
        assert_ne!(classifier, CLASSIFIER);
    }
}
