//! A world in which calls are made: events in, happenings out.
//!
//! [`World`](state::World) is what there is; each other file has the part of it that is about clients, servers or
//! arrivals; `run` goes from event to event.

mod arrivals;
mod calls;
mod client;
mod dependency;
mod process;
mod run;
mod server;
mod source;
mod state;
mod tally;

pub use self::run::{run, run_in_ticks, run_traced, run_watched};
pub use self::state::seed_of_process;
