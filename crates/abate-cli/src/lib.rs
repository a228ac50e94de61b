//! The `abate` command: what a policy does to callers and to their dependency, before production
//! finds out.
//!
//! ```text
//! cargo install abate-cli
//! abate explain policies.toml
//! ```
//!
//! Exit codes: 0 all is well, 1 a figure was missed, 2 bad input or usage. This library is the
//! command's own; as an interface for others it promises nothing.

mod command;
mod exit;
mod explain;
mod figures;
mod input;
mod progress;
mod simulate;
mod terminal;
mod verify;
pub mod whole;

pub use self::command::main;
