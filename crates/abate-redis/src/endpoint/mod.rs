//! Where the store is, whose keys are whose, and how long it may take.

mod address;
mod problem;
#[cfg(test)]
mod tests;

pub use address::Endpoint;
pub use problem::{EndpointError, Problem};
