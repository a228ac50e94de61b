//! The moment after which an answer is of no use.

use std::time::{Duration, Instant};

/// The moment by which a call must have ended, or never.
///
/// Put into a request's extensions it bounds that one call; `abate`'s layers read it.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use abate_core::deadline::Deadline;
///
/// let now = Instant::now();
/// let deadline = Deadline::after(now, Duration::from_secs(30));
/// assert_eq!(deadline.remaining(now), Duration::from_secs(30));
/// assert_eq!(Deadline::NEVER.remaining(now), Duration::MAX);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// No bound at all.
    pub const NEVER: Self = Self(None);

    /// Ends at `instant`.
    #[inline]
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self(Some(instant))
    }

    /// Ends `length` after `now`; a length that no clock can hold is never reached.
    #[inline]
    #[must_use]
    pub fn after(now: Instant, length: Duration) -> Self {
        Self(now.checked_add(length))
    }

    /// The moment itself; `None` for [`Deadline::NEVER`].
    #[inline]
    #[must_use]
    pub const fn instant(self) -> Option<Instant> {
        self.0
    }

    /// What is left at `now`: zero once it has passed, [`Duration::MAX`] for [`Deadline::NEVER`].
    #[inline]
    #[must_use]
    pub fn remaining(self, now: Instant) -> Duration {
        self.0.map_or(Duration::MAX, |at| at.saturating_duration_since(now))
    }

    /// Whether it has passed at `now`.
    #[inline]
    #[must_use]
    pub fn has_passed(self, now: Instant) -> bool {
        self.0.is_some_and(|at| at <= now)
    }

    /// Whether it comes at `other` or earlier; what never comes does not.
    #[inline]
    #[must_use]
    pub fn comes_by(self, other: Self) -> bool {
        match (self.0, other.0) {
            (Some(own), Some(other)) => own <= other,
            (own, None) => own.is_some(),
            (None, Some(_)) => false,
        }
    }

    /// Whichever of the two comes first.
    #[inline]
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Self(Some(a.min(b))),
            (a, b) => Self(a.or(b)),
        }
    }
}

/// A length in nanoseconds, saturating at 584 years.
#[inline]
pub(crate) const fn nanos(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000_000).saturating_add(length.subsec_nanos() as u64)
}

/// The nanoseconds from `base` to `now`; none when that is earlier. They start again after 584 years.
#[inline]
pub(crate) fn nanos_since(base: Instant, now: Instant) -> u64 {
    match now.checked_duration_since(base) {
        Some(since) => {
            since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(since.subsec_nanos().into())
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::disallowed_methods, reason = "any moment to start from")]
    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_length_beyond_every_clock_never_ends() {
        let now = now();
        assert_eq!(Deadline::after(now, Duration::MAX), Deadline::NEVER);
    }

    #[test]
    fn the_earlier_of_two_wins_and_never_loses_to_everything() {
        let now = now();
        let (soon, late) = (Deadline::at(now), Deadline::after(now, Duration::from_secs(1)));
        assert_eq!(soon.earlier(late), soon);
        assert_eq!(late.earlier(soon), soon);
        assert_eq!(Deadline::NEVER.earlier(late), late);
        assert_eq!(late.earlier(Deadline::NEVER), late);
    }

    #[test]
    fn nothing_is_left_after_it_has_passed() {
        let now = now();
        assert_eq!(Deadline::at(now).remaining(now + Duration::from_secs(9)), Duration::ZERO);
    }
}
