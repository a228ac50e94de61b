//! Scenarios: what happens, and the policies to be compared, read from a TOML file.

mod clients;
mod file;
mod laws;
mod servers;
mod shipped;

pub use self::file::{Candidate, Scenario};
pub use self::shipped::{shipped, shipped_names};

#[cfg(test)]
mod tests;
