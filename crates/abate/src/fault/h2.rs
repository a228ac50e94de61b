//! HTTP/2 below hyper, tonic and reqwest.

use std::error::Error as StdError;

use abate_core::outcome::Fault;
use h2::{Error, Reason};

use super::word::Word;

pub(super) fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    let error = error.downcast_ref::<Error>()?;
    if error.is_io() {
        return None; // It is below, and says what there is to say.
    }
    let Some(reason) = error.reason() else {
        // What was asked of h2 cannot be sent: a header that is malformed, say.
        return Some(Word::Last(Fault::Permanent));
    };
    Some(if error.is_remote() {
        of_peer(error, reason)
    } else if error.is_reset() && !error.is_library() {
        of_caller(reason)
    } else {
        Word::Unless(Fault::Ambiguous)
    })
}

/// A frame of the peer's.
fn of_peer(error: &Error, reason: Reason) -> Word {
    match reason {
        // The next connection has the same protocol and the same ciphers.
        Reason::HTTP_1_1_REQUIRED | Reason::INADEQUATE_SECURITY => Word::Last(Fault::Permanent),
        // h2 fails with a GOAWAY just the streams above its last one, which RFC 9113 sections 6.8
        // and 8.7 declare untouched whatever the reason. Those below go on; when they die after
        // all, it is with the connection, as an `io::Error`.
        _ if error.is_go_away() => Word::Last(Fault::Unsent),
        Reason::REFUSED_STREAM => Word::Last(Fault::Unsent),
        _ => Word::Unless(Fault::Ambiguous),
    }
}

/// A reset of our own, which is no judgement on the peer.
fn of_caller(reason: Reason) -> Word {
    match reason {
        Reason::CANCEL => Word::Last(Fault::Cancelled),
        // What hyper resets a stream with when the caller's body breaks.
        _ => Word::Last(Fault::Permanent),
    }
}
