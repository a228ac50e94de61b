use abate_core::outcome::Fault;
use abate_core::session::StopReason;

/// What refused or broke a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client below failed; its error is the source.
    Client,
    /// The circuit breaker is open, or waits for its probes.
    BreakerOpen,
    /// As many calls as the concurrency limit allows are in flight, and none ended in time.
    LimitReached,
    /// The dependency asked to be left alone, and its time has not come.
    CoolingDown,
    /// The request was to be sent with an idempotency key, and none could be made.
    NoKey,
    /// The attempt took longer than its timeout.
    AttemptTimeout,
    /// The call's deadline has passed.
    Deadline,
    /// After its wait a retry was not sent, for this reason; the earlier response is gone.
    RetryRefused(StopReason),
}

impl ErrorKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "the client failed",
            Self::BreakerOpen => "the circuit breaker is open",
            Self::LimitReached => "the concurrency limit is reached",
            Self::CoolingDown => "the dependency asked to be left alone",
            Self::NoKey => "no idempotency key could be made",
            Self::AttemptTimeout => "the attempt timed out",
            Self::Deadline => "the deadline has passed",
            Self::RetryRefused(_) => "the retry was not sent",
        }
    }

    pub(super) const fn fault(self) -> Fault {
        match self {
            Self::Client | Self::AttemptTimeout => Fault::Ambiguous,
            Self::BreakerOpen
            | Self::LimitReached
            | Self::CoolingDown
            | Self::NoKey
            | Self::RetryRefused(_) => Fault::Local,
            Self::Deadline => Fault::Cancelled,
        }
    }
}
