//! What an error means for a repeat, found by the types in its chain and never by its text.

use std::error::Error as StdError;
use std::io;

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

    impl std::fmt::Display for Wrapped {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    fn a_reset_is_ambiguous() {
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::UnexpectedEof] {
            assert_eq!(of(&io::Error::from(kind)), Fault::Ambiguous);
        }
    }

    #[derive(Debug)]
    struct Circle;

    impl std::fmt::Display for Circle {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
