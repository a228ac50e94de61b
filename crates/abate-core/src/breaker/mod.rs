//! May we call at all? A circuit breaker that trips on evidence, and cannot get stuck.
//!
//! Closed, a call costs one relaxed add to be admitted and one to be recorded, whatever the rate.
//! A rate trips it only when it is significantly above the threshold (`n·q + 2·√(n·q·(1−q))`), so
//! that bad luck does not lock out a dependency that works; a streak trips it where calls are too
//! few for a rate. Open times escalate and are jittered. Half-open lets a few probes through, each
//! a permit with a lease: dropped, stale or never polled, it cannot wedge the breaker. Closed
//! again, it lets traffic back in as fast as answers come ("slow start").
//!
//! Every admission carries the generation in which it was made, and the result of an earlier
//! generation decides nothing.

mod handle;
mod machine;
mod permit;
mod rules;
mod state;
mod trial;
mod window;
mod word;

pub use self::handle::{Admitted, Breaker};
pub use self::permit::{Permit, Tail};
pub use self::rules::Rules;
pub use self::state::{Mode, Refused, State, Transition};

#[cfg(test)]
#[cfg(loom)]
mod loom;
#[cfg(test)]
mod tests;
