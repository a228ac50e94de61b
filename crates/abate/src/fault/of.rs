use std::error::Error as StdError;
use std::io;

use abate_core::outcome::Fault;

use super::chain::chain;
use super::word::Word;

type Judge = fn(&(dyn StdError + 'static)) -> Option<Word>;

/// Each knows the errors of one library.
const JUDGES: &[Judge] = &[
    super::known::word,
    of_io,
    #[cfg(feature = "hyper")]
    super::hyper::word,
    #[cfg(feature = "h2")]
    super::h2::word,
    #[cfg(feature = "rustls")]
    super::rustls::word,
    #[cfg(feature = "reqwest")]
    super::reqwest::word,
];

/// The fault class of a client's error. One of ours knows its own:
/// [`Error::fault`](crate::Error::fault).
///
/// The error and what it was made from are looked at by their types, down to a depth of 32; see the
/// [table](super#what-is-recognised). What is not known is [`Fault::Ambiguous`]: repeated only
/// where that is harmless.
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
    of_with(error, |_| None)
}

/// As [`of`], where `ours` knows some errors by itself, which have the last word.
pub(crate) fn of_with(
    error: &(dyn StdError + 'static),
    ours: fn(&(dyn StdError + 'static)) -> Option<Fault>,
) -> Fault {
    let mut fault = None;
    for error in chain(error) {
        match ours(error).map(Word::Last).or_else(|| word(error)) {
            Some(Word::Last(last)) => return last,
            Some(Word::Unless(unless)) => fault = fault.or(Some(unless)),
            None => {}
        }
    }
    fault.unwrap_or(Fault::Ambiguous)
}

fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    JUDGES.iter().find_map(|judge| judge(error))
}

/// These two come of connecting alone. An unreachable host or network does not: it can befall a
/// connection on which the request was sent already.
fn of_io(error: &(dyn StdError + 'static)) -> Option<Word> {
    let kind = error.downcast_ref::<io::Error>()?.kind();
    let unsent = matches!(kind, io::ErrorKind::ConnectionRefused | io::ErrorKind::AddrNotAvailable);
    unsent.then_some(Word::Unless(Fault::Unsent))
}
