//! What a server says about coming back: header bytes in, a [`Hint`] out.
//!
//! `Retry-After` (RFC 9110 section 10.2.3) in seconds and in the three forms of HTTP-date, its
//! cousin in milliseconds, and, where a policy declares that a dependency sends them, quota
//! headers, gRPC's pushback and an outright "do not retry". All are read leniently where leniency
//! keeps their meaning (a fraction is rounded up, to the next millisecond) and ignored where they
//! are malformed. Nothing here fails, and no number is too large.

mod clock;
mod hint;
mod number;
mod pushback;
mod quota;
mod sources;

pub use self::hint::Hint;
pub use self::pushback::{Pushback, PushbackHeader};
pub use self::sources::{HintSources, ResetUnit};

#[cfg(test)]
mod tests;
