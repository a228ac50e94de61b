use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::time::Instant;

use abate_core::outcome::Fault;
use abate_core::session::StopReason;

use super::kind::ErrorKind;
use crate::fault;
use crate::report::Report;

/// Any error at all, as tower has it.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a call has no response.
///
/// One pointer wide. An error of the client below is its [`source`](StdError::source), untouched;
/// a refusal of our own has none. Layers pass an error of their own kind on as it is, so however
/// many are stacked, this is the outermost one.
///
/// # Examples
///
/// ```
/// fn status_for(error: &abate::Error) -> http::StatusCode {
///     match error.kind() {
///         abate::ErrorKind::BreakerOpen => http::StatusCode::SERVICE_UNAVAILABLE,
///         abate::ErrorKind::AttemptTimeout | abate::ErrorKind::Deadline => {
///             http::StatusCode::GATEWAY_TIMEOUT
///         }
///         _ => http::StatusCode::BAD_GATEWAY,
///     }
/// }
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    retry_at: Option<Instant>,
    report: Option<Report>,
    source: Option<BoxError>,
}

impl Error {
    /// An error of the service below; one of our own is passed on unwrapped.
    #[inline]
    pub(crate) fn from_inner<E: Into<BoxError> + 'static>(error: E) -> Self {
        let mut error = Some(error);
        // Looked at before it is boxed, so that passing on costs nothing.
        let any: &mut dyn Any = &mut error;
        if let Some(Some(ours)) = any.downcast_mut::<Option<Self>>().map(Option::take) {
            return ours;
        }
        match error {
            Some(error) => Self::from_box(error.into()),
            None => Self::new(ErrorKind::Client),
        }
    }

    fn from_box(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(ours) => *ours,
            Err(source) => {
                let mut error = Self::new(ErrorKind::Client);
                error.0.source = Some(source);
                error
            }
        }
    }

    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, retry_at: None, report: None, source: None }))
    }

    pub(crate) fn with_retry_at(mut self, retry_at: Option<Instant>) -> Self {
        self.0.retry_at = retry_at;
        self
    }

    pub(crate) fn with_report(mut self, report: Report) -> Self {
        self.set_report(report);
        self
    }

    pub(crate) fn set_report(&mut self, report: Report) {
        self.0.report = Some(report);
    }

    /// What refused or broke the call.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the error means for a repeat.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match (self.0.kind, &self.0.source) {
            (ErrorKind::Client, Some(source)) => {
                fault::of_with(source.as_ref(), |error| error.downcast_ref().map(Self::fault))
            }
            (kind, _) => kind.fault(),
        }
    }

    /// The attempts that came to an end, the first included. One that our own layers refused, or
    /// that was cut at the deadline, is none; without a retry layer nobody counts.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.report().map_or(0, Report::attempts)
    }

    /// When it makes sense to call again: the breaker's reopening, or the server's wish.
    #[must_use]
    pub fn retry_at(&self) -> Option<Instant> {
        self.0.retry_at.or_else(|| self.report().and_then(Report::retry_at))
    }

    /// How the call went, where a retry layer is above.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.0.report.as_ref()
    }

    /// Finds an error of ours in a chain of foreign ones, such as a tower layer's box.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn handle(error: tower::BoxError) {
    /// if let Some(error) = abate::Error::find(error.as_ref()) {
    ///     println!("{:?} after {} attempts", error.kind(), error.attempts());
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn find<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        fault::chain(error).find_map(|error| error.downcast_ref())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind.as_str())?;
        if let ErrorKind::RetryRefused(reason) = self.0.kind {
            let why = match reason {
                StopReason::Pace => "others wait to be sent already",
                StopReason::Deadline => "it would come too late",
                _ => reason.as_str(),
            };
            write!(f, ": {why}")?;
        }
        match &self.0.report {
            Some(report) if report.attempts() > 0 => write!(f, " ({report})"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind);
        if let Some(retry_at) = &self.0.retry_at {
            debug.field("retry_at", retry_at);
        }
        if let Some(report) = &self.0.report {
            debug.field("report", report);
        }
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
