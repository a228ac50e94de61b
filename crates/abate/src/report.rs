use std::fmt;
use std::time::{Duration, Instant};

use abate_core::outcome::Fault;
use abate_core::session::StopReason;
use http::StatusCode;

/// How a call went: each attempt, and why there was not another.
///
/// A response that took more than one attempt, or that would have been worth another, carries it in
/// its extensions; an error has it under [`Error::report`](crate::Error::report). A call that succeeds
/// at once has none.
///
/// # Examples
///
/// ```
/// fn explain<B>(response: &http::Response<B>) -> String {
///     match response.extensions().get::<abate::Report>() {
///         Some(report) => report.to_string(),
///         None => "answered at once".to_owned(),
///     }
/// }
/// # assert_eq!(explain(&http::Response::new(())), "answered at once");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    tried: Vec<Tried>,
    elapsed: Duration,
    stop: Option<StopReason>,
    retry_at: Option<Instant>,
}

/// One attempt of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    result: TriedResult,
    waited: Duration,
}

/// What one attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TriedResult {
    /// A response with this status.
    Status(StatusCode),
    /// No response, for this kind of reason.
    Fault(Fault),
}

impl Report {
    pub(crate) fn push(&mut self, result: TriedResult, waited: Duration) {
        self.tried.push(Tried { result, waited });
    }

    pub(crate) fn end(
        &mut self,
        elapsed: Duration,
        stop: Option<StopReason>,
        retry_at: Option<Instant>,
    ) {
        (self.elapsed, self.stop, self.retry_at) = (elapsed, stop, retry_at);
    }

    /// How many attempts were made, the first included. One that our own layers refused is none.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.tried.len()).unwrap_or(u32::MAX)
    }

    /// The attempts, in order.
    #[must_use]
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// From the start of the call to its end.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The time spent waiting between attempts.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.tried.iter().map(|tried| tried.waited).sum()
    }

    /// Why there was no further attempt; `None` where the last one succeeded.
    #[must_use]
    pub const fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// When the server wants to be called again, where it said so.
    #[must_use]
    pub const fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }
}

impl Tried {
    /// What it came to.
    #[must_use]
    pub const fn result(&self) -> TriedResult {
        self.result
    }

    /// The wait before it.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.tried.len() == 1 { "" } else { "s" };
        write!(f, "{} attempt{plural} in {:.1?}", self.tried.len(), self.elapsed)?;
        for (n, tried) in self.tried.iter().enumerate() {
            f.write_str(if n == 0 { ": " } else { ", " })?;
            if !tried.waited.is_zero() {
                write!(f, "after {:.1?} ", tried.waited)?;
            }
            write!(f, "{}", tried.result)?;
        }
        match self.stop {
            Some(stop) => write!(f, "; stopped: {stop}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TriedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{}", status.as_u16()),
            Self::Fault(fault) => f.write_str(match fault {
                Fault::Unsent => "not sent",
                Fault::Ambiguous => "no answer",
                Fault::Permanent => "cannot work",
                Fault::Local => "refused here",
                Fault::Cancelled => "cancelled",
                _ => "failed",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_one_line() {
        let mut report = Report::default();
        report.push(TriedResult::Status(StatusCode::SERVICE_UNAVAILABLE), Duration::ZERO);
        report.push(TriedResult::Fault(Fault::Ambiguous), Duration::from_millis(80));
        report.end(Duration::from_millis(1_250), Some(StopReason::Budget), None);
        assert_eq!(
            report.to_string(),
            "2 attempts in 1.2s: 503, after 80.0ms no answer; stopped: budget"
        );
        assert_eq!(report.waited(), Duration::from_millis(80));
    }
}
