//! One retry budget for all processes that call a dependency.
//!
//! # What it protects from
//!
//! A budget for each process is no budget for a fleet: with a thousand processes a thousand floors add
//! up to a storm, and a process that fails alone is refused retries while all others have tokens to
//! spare. In a [`Fleet`] each process goes on earning and spending by itself, hands what it does not
//! need to a store, and asks there for what it lacks: all together retry at most `ratio` of what
//! succeeds, and one small floor, whatever their number.
//!
//! # Where it stands
//!
//! Beside the stack. A call's first attempt never learns that there is a store, and no call ever waits for
//! one: only a retry that its own process cannot pay for waits for an answer, for 100 ms at the least
//! (which its backoff is counted towards) and 200 ms at the most. A store that is slow, down or gone
//! makes no call fail: each process then goes by what it earns itself, and a share of the floor.
//!
//! # Differences from tower's own
//!
//! `tower::retry::budget` is a process's own, and so are all others that we know.
//!
//! # Defaults
//!
//! | what | default | why |
//! |---|---|---|
//! | floor | [`FLOOR`], 10 retries/s of the whole fleet | enough to find out that a dependency is back |
//! | interval | [`INTERVAL`], 1 s ± 20 % | an outage is known to the pool a second after it began |
//! | time of an exchange | [`EXCHANGE_TIMEOUT`], 250 ms | no retry waits longer for it than 200 ms |
//! | time of a farewell | [`FAREWELL_TIMEOUT`], 100 ms | what is lost fades within seconds anyway |
//!
//! # Examples
//!
//! A store of your own is one method; this one keeps its pools in memory, for all of a process.
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::Mutex;
//! use abate::decisions::fleet::PoolCore;
//! use abate::fleet::{BudgetStore, Fleet, Order, Reply, StoreError, Terms, FLOOR};
//! use abate::{Policy, Ratio, RetryLayer};
//! use tokio::time::Instant;
//!
//! struct Memory(Instant, Mutex<HashMap<String, PoolCore>>);
//!
//! impl BudgetStore for Memory {
//!     async fn exchange(&self, orders: &[Order<'_>]) -> Vec<Result<Reply, StoreError>> {
//!         let now = self.0.elapsed().as_micros() as u64;
//!         let mut pools = self.1.lock().unwrap();
//!         let answer = |order: &Order<'_>| {
//!             let pool = pools.entry(order.budget.to_owned()).or_default();
//!             Ok(pool.exchange(&order.terms, now, &order.message))
//!         };
//!         orders.iter().map(answer).collect()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let fleet = Fleet::new(Memory(Instant::now(), Mutex::default()));
//! let driver = tokio::spawn(fleet.drive());
//!
//! let policy = Policy::default();
//! let terms = Terms::new(Ratio::new(0.2)?, FLOOR)?;
//! let retries = RetryLayer::new(policy.clone()).with_budget(fleet.budget("payments", &policy, terms)?);
//! # drop(retries);
//!
//! fleet.shutdown().await;
//! driver.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Telemetry
//!
//! One event, of level debug, when the store stops answering, and one when it answers again. A store tells
//! people itself what is wrong with it: `abate_redis::RedisStore` warns once at each change.

mod driver;
mod error;
mod handle;
mod members;

pub use abate_core::fleet::{
    BudgetStore, FLOOR, INTERVAL, Message, Order, Reply, StoreError, StoreFailure, Terms,
    TermsError,
};

pub use self::driver::EXCHANGE_TIMEOUT;
pub use self::error::FleetError;
pub use self::handle::{FAREWELL_TIMEOUT, Fleet};
