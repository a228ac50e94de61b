//! A supervised connection that runs Lua scripts. Hidden: it is for the stores of this crate and their tests.
//!
//! It connects when it is first used, in the background, and again whenever it must; a request waits at most the
//! endpoint's request timeout (250 ms) and learns for sure what became of it: answered, refused, never sent, or unknown.
//! Nothing is ever sent twice, but for a script that the server says it does not have.
//!
//! `supervisor` decides, without a clock or a socket: when to give up a connection, when to dial, what to tell.
//! `driver` is the task that does it.

mod connect;
mod driver;
mod error;
mod handle;
mod script;
mod supervisor;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;

pub use error::{Cause, LinkError, Refusal};
pub use handle::Link;
pub use script::{Call, Reply, Script};
