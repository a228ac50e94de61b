use std::fmt;
use std::time::Duration;

/// A server's wish not to be called again before some time has passed.
///
/// `abate`'s `RetryAfterLayer` puts it into the extensions of a response for other layers, and
/// other people's retries, to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pushback {
    delay: Duration,
    header: PushbackHeader,
}

/// The header that a [`Pushback`] was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PushbackHeader {
    /// `Retry-After`.
    RetryAfter,
    /// `retry-after-ms`.
    RetryAfterMs,
    /// The declared one of the `x-ratelimit-reset` family.
    RateLimitReset,
    /// `RateLimit` of the IETF draft.
    RateLimit,
    /// `grpc-retry-pushback-ms`.
    GrpcPushback,
}

impl Pushback {
    /// A pushback as of a `Retry-After` of `delay`, for tests and for layers of your own.
    #[must_use]
    pub const fn new(delay: Duration) -> Self {
        Self::of(delay, PushbackHeader::RetryAfter)
    }

    pub(super) const fn of(delay: Duration, header: PushbackHeader) -> Self {
        Self { delay, header }
    }

    /// How long to stay away, from the moment the response arrived. Zero when the server's moment
    /// has passed already.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// Where it was read.
    #[must_use]
    pub const fn header(self) -> PushbackHeader {
        self.header
    }

    /// Of equals `Retry-After`, in whichever order they are read.
    pub(super) fn longer(self, other: Self) -> Self {
        let preferred = other.header == PushbackHeader::RetryAfter && other.delay == self.delay;
        if other.delay > self.delay || preferred { other } else { self }
    }
}

impl PushbackHeader {
    /// A name for logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetryAfter => "retry-after",
            Self::RetryAfterMs => "retry-after-ms",
            Self::RateLimitReset => "x-ratelimit-reset",
            Self::RateLimit => "ratelimit",
            Self::GrpcPushback => "grpc-retry-pushback-ms",
        }
    }
}

impl fmt::Display for PushbackHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
