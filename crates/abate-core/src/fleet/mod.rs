//! May all of us spend one more? One retry budget for many processes.
//!
//! A budget for each process is no budget for a fleet: floors add up, and a process that fails alone
//! is refused while all others have tokens to spare. Here each process goes on minting what its own
//! successes earn and spends that first. What it does not need it hands to a pool, and what it lacks
//! it asks of the pool. The pool only *moves* tokens, and mints one small floor for everybody, so that
//! no partition can break the ratio, and there is nothing to fail open or closed.
//!
//! Three parts, none of which waits or reads a clock:
//!
//! * [`ClientCore`], one for each budget of a process: says what to send and when, and takes answers.
//! * [`PoolCore`], one for each budget of the fleet: the same arithmetic as a store's script.
//! * [`BudgetStore`], which carries messages to wherever the pool is.
//!
//! For any time T the retries of the fleet are at most `ratio·earnings + floor·T + S`, where S, what
//! was saved, is at most `(ratio·rate + floor)·`[`TAU`](crate::budget::TAU): tokens fade wherever they
//! are. Neither the number of processes nor the interval of messages is in it. A call's first attempt
//! never learns that there is a store.

mod client;
mod message;
mod pool;
mod store;
mod terms;

pub use self::client::ClientCore;
pub use self::message::{Message, Reply};
pub use self::pool::{PoolCore, State};
pub use self::store::{BudgetStore, Order, StoreError, StoreFailure};
pub use self::terms::{FLOOR, INTERVAL, LONGEST_INTERVAL, SHORTEST_INTERVAL, Terms, TermsError};
#[cfg(test)]
mod tests;
