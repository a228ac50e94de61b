use http::{HeaderMap, HeaderName, StatusCode};

/// The headers that a dependency's hints are read from.
///
/// `Retry-After` and `retry-after-ms` mean the same wherever they come from, and are always read.
/// The others mean different things at different places, or hand the decision to the server, so a
/// policy says which of them a dependency sends.
///
/// # Examples
///
/// ```
/// use abate_core::retry_after::{HintSources, ResetUnit};
///
/// // GitHub's: the moment at which the quota is full again, in seconds since 1970.
/// let name = http::HeaderName::from_static("x-ratelimit-reset");
/// let sources = HintSources::new().with_reset(name, ResetUnit::EpochSeconds).with_should_retry();
/// # drop(sources);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HintSources {
    pub(super) reset: Option<(HeaderName, ResetUnit)>,
    pub(super) ratelimit: bool,
    pub(super) grpc_pushback: bool,
    pub(super) should_retry: bool,
}

pub(super) static GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// What the number in a header of the `x-ratelimit-reset` family means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResetUnit {
    /// Seconds since 1970 (GitHub, GitLab).
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
    /// Seconds from now.
    Seconds,
    /// A duration as Go prints it, such as `6m0s` (OpenAI).
    GoDuration,
}

impl HintSources {
    /// `Retry-After` and `retry-after-ms` alone.
    #[must_use]
    pub const fn new() -> Self {
        Self { reset: None, ratelimit: false, grpc_pushback: false, should_retry: false }
    }

    /// Reads the header `name` as the moment when a quota is available again, in `unit`.
    #[must_use]
    pub fn with_reset(mut self, name: HeaderName, unit: ResetUnit) -> Self {
        self.reset = Some((name, unit));
        self
    }

    /// Reads `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10): the seconds until a quota of
    /// which nothing remains is available again.
    #[must_use]
    pub const fn with_ratelimit(mut self) -> Self {
        self.ratelimit = true;
        self
    }

    /// Obeys `grpc-retry-pushback-ms` (gRFC A6): a number is the delay, and a word that the call may
    /// be repeated; anything else forbids a retry.
    #[must_use]
    pub const fn with_grpc_pushback(mut self) -> Self {
        self.grpc_pushback = true;
        self
    }

    /// Whether a response may have a hint: it is no success, or it has the one of gRPC, which is at
    /// home on a 200.
    #[must_use]
    pub fn may_be_in(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        !status.is_success() || (self.grpc_pushback && headers.contains_key(&GRPC_PUSHBACK))
    }

    /// Obeys `x-should-retry`: `false` forbids a retry, `true` asks for one whatever the status.
    #[must_use]
    pub const fn with_should_retry(mut self) -> Self {
        self.should_retry = true;
        self
    }
}
