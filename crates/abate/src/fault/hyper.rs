//! hyper and the client of hyper-util.

use std::error::Error as StdError;

use abate_core::outcome::Fault;
use hyper_util::client::legacy;

use super::word::Word;

pub(super) fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    if let Some(error) = error.downcast_ref::<legacy::Error>() {
        return of_client(error);
    }
    // On a connection that stands: unsent only what was taken back out of the queue before
    // anything was written, whatever the cause below says.
    Some(match error.downcast_ref::<hyper::Error>()? {
        // The caller's own body broke: no other attempt mends it, and the peer is not to blame. It
        // may be somebody else's response, so what is below is about another request.
        error if error.is_user() => Word::Last(Fault::Permanent),
        error if error.is_canceled() || error.is_closed() => Word::Unless(Fault::Unsent),
        _ => Word::Unless(Fault::Ambiguous),
    })
}

fn of_client(error: &legacy::Error) -> Option<Word> {
    if error.is_connect() {
        return Some(Word::Unless(Fault::Unsent));
    }
    // Without a cause it is the request itself that cannot be sent: a relative URI, say.
    if error.source().is_none() {
        return Some(Word::Last(Fault::Permanent));
    }
    // A request is handed to a connection, and then the error names it. One that names none is
    // about a connection which broke while it was made ready: in the preface of HTTP/2, say.
    error.connect_info().is_none().then_some(Word::Unless(Fault::Unsent))
}
