//! What an error means for a repeat, found by the types in its chain and never by its text.

use std::error::Error as StdError;
use std::{fmt, io};

use abate_core::outcome::Fault;

/// Chains are short; one that goes in a circle is not followed for ever.
const DEEPEST: usize = 32;

/// The fault class of a client's error. One of ours knows its own:
/// [`Error::fault`](crate::Error::fault).
///
/// What is not known is [`Fault::Ambiguous`]: repeated only where that is harmless.
///
/// # Examples
///
/// ```
/// use std::io;
/// use abate::{Fault, fault};
///
/// let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
/// assert_eq!(fault::of(&refused), Fault::Unsent);
/// assert_eq!(fault::of(&io::Error::other("?")), Fault::Ambiguous);
/// ```
#[must_use]
pub fn of(error: &(dyn StdError + 'static)) -> Fault {
    chain(error).find_map(known).unwrap_or(Fault::Ambiguous)
}

/// An error that says itself what it means for a repeat.
///
/// For clients whose errors are not known here, and for [tests](crate::test): [`of`] believes it,
/// whatever it was made from.
///
/// # Examples
///
/// ```
/// use abate::{Fault, fault};
///
/// // A client that was still waiting for a connection of its pool:
/// let error = fault::Known::new(Fault::Unsent).with_source("the pool is empty");
/// assert_eq!(fault::of(&error), Fault::Unsent);
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

/// An error and all its sources, also those that an [`io::Error`] holds and its `source` skips.
pub(crate) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| below(*error)).take(DEEPEST)
}

fn below<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    match error.downcast_ref::<io::Error>() {
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

fn known(error: &(dyn StdError + 'static)) -> Option<Fault> {
    if let Some(known) = error.downcast_ref::<Known>() {
        return Some(known.fault);
    }
    if let Some(io) = error.downcast_ref::<io::Error>() {
        return of_io(io.kind());
    }
    of_hyper(error)
}

/// These two come of connecting alone. An unreachable host or network does not: it can befall a
/// connection on which the request was sent already.
fn of_io(kind: io::ErrorKind) -> Option<Fault> {
    let unsent = matches!(kind, io::ErrorKind::ConnectionRefused | io::ErrorKind::AddrNotAvailable);
    unsent.then_some(Fault::Unsent)
}

#[cfg(feature = "hyper")]
fn of_hyper(error: &(dyn StdError + 'static)) -> Option<Fault> {
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        // Without a cause it is the request itself that cannot be sent: a relative URI, say.
        let permanent = error.source().is_none().then_some(Fault::Permanent);
        return if error.is_connect() { Some(Fault::Unsent) } else { permanent };
    }
    // On a connection that stands: unsent only what was taken back out of the queue before
    // anything was written, whatever the cause below says.
    let error = error.downcast_ref::<hyper::Error>()?;
    Some(match error {
        error if error.is_canceled() => Fault::Unsent,
        // The caller's own body broke: no other attempt mends it, and the peer is not to blame.
        error if error.is_user() => Fault::Permanent,
        _ => Fault::Ambiguous,
    })
}

#[cfg(not(feature = "hyper"))]
fn of_hyper(_: &(dyn StdError + 'static)) -> Option<Fault> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Wrapped(io::Error);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("connection refused, it says")
        }
    }

    impl StdError for Wrapped {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn an_error_inside_an_io_error_is_found() {
        let deep = Wrapped(io::Error::other(Wrapped(io::ErrorKind::ConnectionRefused.into())));
        assert_eq!(of(&deep), Fault::Unsent);
    }

    #[test]
    fn text_decides_nothing() {
        assert_eq!(of(&Wrapped(io::Error::other("connection refused"))), Fault::Ambiguous);
    }

    #[test]
    fn an_error_that_knows_its_fault_is_believed_wherever_it_stands() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let known = Known::new(Fault::Permanent).with_source(refused);
        assert_eq!(known.source().unwrap().to_string(), "connection refused");
        assert_eq!(of(&known), known.fault());
        assert_eq!(of(&Wrapped(io::Error::other(known))), Fault::Permanent);
    }

    #[test]
    fn a_reset_is_ambiguous() {
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof] {
            assert_eq!(of(&io::Error::from(kind)), Fault::Ambiguous);
        }
    }

    #[derive(Debug)]
    struct Circle;

    impl fmt::Display for Circle {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("round and round")
        }
    }

    impl StdError for Circle {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&Circle)
        }
    }

    #[test]
    fn a_chain_without_end_is_given_up() {
        assert_eq!(of(&Circle), Fault::Ambiguous);
    }
}
