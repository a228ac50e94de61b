//! May we spend one more? A retry budget earned on success, paced, and decaying.
//!
//! Every call that succeeds earns `ratio` tokens and every retry costs one, so that retries are a
//! share of what *works*: in a total outage nothing is earned and retries tend to none. A small
//! floor lets a quiet process retry at all. Tokens decay with a time constant of [`TAU`], and
//! what was earned before an outage is not spent in its first second: a retry needs a token when
//! it is granted and a slot when it is sent, and slots come at `ratio × calls + floor` per second.
//!
//! The path of a call that succeeds is two relaxed adds. Only a call that finds the last fold a
//! second old (one in sixteen looks), and a call that fails, do any arithmetic; nothing locks.

mod desk;
mod grant;
mod handle;
mod ledger;
mod rules;
mod ticket;

pub(crate) use self::desk::{Desk, FLEET_RATE_TAU, Leased, OWN_SHARE};
pub use self::grant::Grant;
pub use self::handle::Budget;
pub(crate) use self::rules::ONE;
pub use self::rules::{
    Costs, Denied, Earn, LONGEST_SLOT_WAIT, RATE_TAU, Rules, SHORTEST_ATTEMPT, TAU,
};

#[cfg(test)]
#[cfg(loom)]
mod loom;
#[cfg(test)]
mod tests;
