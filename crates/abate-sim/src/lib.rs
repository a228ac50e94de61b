//! Storms on the desk: what a policy does to a dependency that fails, before production finds out.
//!
//! A deterministic discrete-event simulator in virtual time. The clients in it run the shipped
//! decisions of `abate-core` (session, budget, breaker); nothing of them is written a second time. Time
//! is counted in whole nanoseconds, randomness comes from one seed, so that a run repeats to the
//! last event on every machine.

mod crew;
mod guard;
pub mod law;
pub mod model;
mod payer;
mod queue;
pub mod record;
pub mod recovery;
pub mod report;
pub mod scenario;
pub mod survey;
pub mod trace;
pub mod verify;
mod world;

pub use self::crew::Crew;
pub use self::world::{run, run_in_ticks, run_traced, run_watched, seed_of_process};
