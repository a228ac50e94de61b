use std::error::Error as StdError;
use std::fmt;

use abate_core::outcome::Fault;

use super::word::Word;

/// An error that says itself what it means for a repeat.
///
/// For clients whose errors are not known here, and for [tests](crate::test): [`of`](super::of)
/// believes it, whatever it was made from, and wherever in a chain it stands.
///
/// # Examples
///
/// A client of one's own, whose errors are taught in one place:
///
/// ```
/// use abate::{Fault, Policy, RetryLayer, fault};
/// use tower::{Layer, ServiceExt};
///
/// #[derive(Debug)]
/// enum PoolError {
///     /// Still waiting for a connection.
///     Empty,
///     Broken(std::io::Error),
/// }
/// # impl std::fmt::Display for PoolError {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
/// #         f.write_str("no connection")
/// #     }
/// # }
/// # impl std::error::Error for PoolError {}
///
/// fn taught(error: PoolError) -> fault::Known {
///     let fault = match &error {
///         PoolError::Empty => Fault::Unsent,
///         PoolError::Broken(error) => fault::of(error),
///     };
///     fault::Known::new(fault).with_source(error)
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tower::BoxError> {
/// # let client = tower::service_fn(|_: http::Request<abate::ReplayBody<String>>| async {
/// #     Err::<http::Response<String>, _>(PoolError::Empty)
/// # });
/// let service = RetryLayer::new(Policy::default()).layer(client.map_err(taught));
/// let request = http::Request::post("http://stock.internal/orders").body(String::new())?;
/// let error = service.oneshot(request).await.unwrap_err();
/// assert_eq!((error.fault(), error.attempts()), (Fault::Unsent, 3));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Known {
    fault: Fault,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Known {
    /// An error that means `fault`.
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        Self { fault, source: None }
    }

    /// The same, because of `source`.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What it means.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        self.fault
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.fault {
            Fault::Unsent => "the request was not sent",
            Fault::Ambiguous => "the connection broke after the request was sent",
            Fault::Permanent => "the request cannot succeed",
            Fault::Local => "the request was refused on our own side",
            Fault::Cancelled => "the request was cancelled",
            _ => "the request failed",
        })
    }
}

impl StdError for Known {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

pub(super) fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    error.downcast_ref::<Known>().map(|known| Word::Last(known.fault))
}
