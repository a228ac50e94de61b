use std::fmt;
use std::io;

use redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

/// The server's own no to one call. A script that writes in its last step, as ours do, has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: Box<str>,
    kind: Option<ServerErrorKind>,
}

impl Refusal {
    pub(super) fn new(error: &ServerError) -> Self {
        Self { code: error.code().into(), kind: error.kind() }
    }

    /// The first word of the server's error, such as `OOM` or `NOPERM`.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The script is not in the server's cache.
    pub(super) fn is_no_script(&self) -> bool {
        self.kind == Some(ServerErrorKind::NoScript)
    }

    /// Another server may be the primary by now: only a new connection, by name, finds it.
    pub(super) fn is_from_replica(&self) -> bool {
        matches!(self.kind, Some(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown))
    }

    /// The server has begun to listen before it has read its data.
    pub(super) fn is_loading(&self) -> bool {
        self.kind == Some(ServerErrorKind::BusyLoading)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server refused it: {}", self.code)
    }
}

/// What keeps a link from working.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The first connection is not there yet.
    Connecting,
    /// Name, TCP, TLS or login failed.
    Unreachable(io::ErrorKind),
    /// Name, TCP, TLS and login took longer than the connect timeout.
    ConnectTimeout,
    /// The server does not accept user or password, or wants one.
    Login,
    /// The server's certificate, or our own roots.
    Tls,
    /// Two requests in a row had no answer in time.
    Timeout,
    /// The connection closed, or was reset.
    Dropped,
    /// What came back was no answer of such a server.
    Garbled,
    /// The server answers with an error.
    Refused(Refusal),
    /// Another request took all the time.
    Busy,
    /// There is no Tokio runtime here.
    NoRuntime,
}

impl Cause {
    /// Of an error that ended an attempt to connect.
    pub(super) fn of_connecting(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::Login,
            ErrorKind::Io => Self::Unreachable(io_kind(error)),
            _ => Self::of_answer(error),
        }
    }

    /// Of an error on a connection that stood.
    pub(super) fn of_answer(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Io => Self::Dropped,
            ErrorKind::Server(_) | ErrorKind::Extension => {
                let errors = error.clone().into_server_errors();
                let first = errors.as_deref().and_then(<[_]>::first);
                first.map_or(Self::Garbled, |(_, error)| Self::Refused(Refusal::new(error)))
            }
            _ => Self::Garbled,
        }
    }
}

fn io_kind(error: &RedisError) -> io::ErrorKind {
    let source = std::error::Error::source(error);
    // The crate hands its own `Arc` on as the source.
    let found = source.and_then(|source| {
        let shared = source.downcast_ref::<std::sync::Arc<dyn std::error::Error + Send + Sync>>();
        shared.map_or_else(
            || source.downcast_ref::<io::Error>(),
            |shared| shared.downcast_ref::<io::Error>(),
        )
    });
    found.map_or(io::ErrorKind::Other, io::Error::kind)
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("not connected yet"),
            Self::Unreachable(kind) => write!(f, "cannot connect: {kind}"),
            Self::ConnectTimeout => f.write_str("cannot connect: no answer in time"),
            Self::Login => f.write_str("the server refused user or password, or wants one"),
            Self::Tls => f.write_str("TLS failed: certificate, name or roots"),
            Self::Timeout => f.write_str("no answer in time"),
            Self::Dropped => f.write_str("the connection was closed"),
            Self::Garbled => f.write_str("the answer is not one of Redis or Valkey"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Busy => f.write_str("another request took all the time"),
            Self::NoRuntime => f.write_str("there is no Tokio runtime here"),
        }
    }
}

/// What became of a request that has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkError {
    /// Not a byte of it was sent: nothing ran.
    Unsent(Cause),
    /// It may have run, or run later, or not. Whoever repeats it may do it twice.
    Unknown(Cause),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsent(cause) => write!(f, "not sent: {cause}"),
            Self::Unknown(cause) => write!(f, "it may have run: {cause}"),
        }
    }
}

impl std::error::Error for LinkError {}
