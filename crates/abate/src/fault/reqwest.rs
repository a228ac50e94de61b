//! What reqwest adds to the errors of hyper-util, hyper and h2, which are its sources.

use std::error::Error as StdError;

use abate_core::classify::Statuses;
use abate_core::outcome::Fault;
use reqwest::Error;

use super::word::Word;

pub(super) fn word(error: &(dyn StdError + 'static)) -> Option<Word> {
    let error = error.downcast_ref::<Error>()?;
    // Of a timeout, a body and a decoder there is no more to say than nothing: they come at any
    // moment after the request was begun, and where it was not, hyper-util's error below says so.
    let permanent = match error.status() {
        Some(status) => !Statuses::TRANSIENT.contains(status.as_u16()),
        None => error.is_builder() || error.is_redirect(),
    };
    permanent.then_some(Word::Last(Fault::Permanent))
}
