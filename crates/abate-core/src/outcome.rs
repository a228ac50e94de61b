//! What happened to one attempt, in words that need no HTTP client.

use http::{HeaderMap, StatusCode};

/// What one attempt came to: an answer, or the reason why there is none.
#[derive(Debug, Clone, Copy)]
pub enum Outcome<'a> {
    /// The dependency answered.
    Response {
        /// The status of the answer.
        status: StatusCode,
        /// Its headers, read for what the server says about coming back.
        headers: &'a HeaderMap,
    },
    /// There is no answer.
    Fault(Fault),
}

impl<'a> Outcome<'a> {
    /// The outcome of a response.
    #[must_use]
    pub fn of<B>(response: &'a http::Response<B>) -> Self {
        Self::Response { status: response.status(), headers: response.headers() }
    }
}

/// Why an attempt has no answer, by what it means for a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing reached the peer: connecting, resolving or the handshake failed, the stream was
    /// refused, or the dispatch was cancelled. Any request may be sent again.
    Unsent,
    /// The peer may have acted on it: the connection broke or time ran out after sending
    /// (RFC 9110 section 9.2.2). Only what is idempotent may be sent again.
    Ambiguous,
    /// Waiting cannot cure it: a certificate that does not match, a name that does not exist.
    Permanent,
    /// We refused it ourselves, by a breaker, a limit or a budget: the peer never saw it.
    Local,
    /// The caller no longer wants it.
    Cancelled,
}
