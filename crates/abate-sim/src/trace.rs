//! What happened, in order, and a number that stands for all of it.

use abate_core::session::StopReason;

/// Something that happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// Nanoseconds from the start.
    pub at: u64,
    /// The number of the call, in order of beginning.
    pub call: u32,
    /// The number of the attempt, from 1; 0 before the first was sent.
    pub attempt: u32,
    /// What it was.
    pub what: What,
}

/// What can happen to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum What {
    /// It began.
    Began,
    /// An attempt was sent.
    Sent,
    /// The attempt was answered.
    Answered {
        /// The status.
        status: u16,
    },
    /// The attempt had no answer in time.
    TimedOut,
    /// It ended.
    Ended(Ending),
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Well.
    Success,
    /// With the outcome of its last attempt, and why there was no other.
    Stopped(StopReason),
    /// Refused by an open breaker.
    BreakerOpen,
    /// Refused by a full concurrency limit.
    LimitReached,
    /// Its total time was over.
    Deadline,
    /// The policy has granted a retry, and another payer had nothing to pay it with.
    Unpaid,
}

impl Ending {
    /// Every one of them.
    pub(crate) const ALL: [Self; 15] = [
        Self::Success,
        Self::BreakerOpen,
        Self::LimitReached,
        Self::Deadline,
        Self::Unpaid,
        Self::Stopped(StopReason::Attempts),
        Self::Stopped(StopReason::Deadline),
        Self::Stopped(StopReason::Budget),
        Self::Stopped(StopReason::Pace),
        Self::Stopped(StopReason::NotRetryable),
        Self::Stopped(StopReason::NotIdempotent),
        Self::Stopped(StopReason::BodyNotReplayable),
        Self::Stopped(StopReason::Refused),
        Self::Stopped(StopReason::Nested),
        Self::Stopped(StopReason::Cancelled),
    ];

    /// Its place among all.
    pub(crate) fn index(self) -> usize {
        Self::ALL.iter().position(|ending| *ending == self).unwrap_or(Self::ALL.len() - 1)
    }

    /// In a word or two.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::BreakerOpen => "breaker open",
            Self::LimitReached => "limit reached",
            Self::Deadline => "deadline",
            Self::Unpaid => "unpaid",
            Self::Stopped(reason) => reason.as_str(),
        }
    }
}

/// All that happened: its hash, and itself where it is kept.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    hash: u64,
    kept: Option<Vec<Happening>>,
}

impl Trace {
    pub(crate) fn new(keeps: bool) -> Self {
        Self { hash: 0, kept: keeps.then(Vec::new) }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_kept(self) -> Vec<Happening> {
        self.kept.unwrap_or_default()
    }

    #[inline]
    pub(crate) fn note(&mut self, happening: Happening) {
        let Happening { at, call, attempt, what } = happening;
        let code = match what {
            What::Began => 1,
            What::Sent => 2,
            What::TimedOut => 3,
            What::Answered { status } => 1 << 16 | u64::from(status),
            What::Ended(ending) => 2 << 16 | ending.index() as u64,
        };
        self.mix(at);
        self.mix(u64::from(call) << 32 | u64::from(attempt));
        self.mix(code);
        if let Some(kept) = &mut self.kept {
            kept.push(happening);
        }
    }

    /// A word more, as the hash of Firefox and rustc takes it in.
    #[inline]
    const fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ending_has_a_place_and_a_name_of_its_own() {
        let mut names: Vec<_> = Ending::ALL.iter().map(|ending| ending.as_str()).collect();
        for (place, ending) in Ending::ALL.iter().enumerate() {
            assert_eq!(ending.index(), place);
        }
        names.sort_unstable();
        names.dedup();
        // The deadline of the layer and that of the session are one word to a reader.
        assert_eq!(names.len(), Ending::ALL.len() - 1);
    }

    #[test]
    fn order_matters_to_the_hash() {
        let happening = |call| Happening { at: 1, call, attempt: 1, what: What::Sent };
        let hash = |calls: [u32; 2]| {
            let mut trace = Trace::default();
            calls.iter().for_each(|call| trace.note(happening(*call)));
            trace.hash()
        };
        assert_ne!(hash([1, 2]), hash([2, 1]));
    }
}
