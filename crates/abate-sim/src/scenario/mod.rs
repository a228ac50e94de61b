//! Scenarios: what happens, and the policies to be compared, read from a TOML file.

mod clients;
mod file;
mod laws;
mod servers;

pub use self::file::{Candidate, Scenario};

#[cfg(test)]
mod tests;
