//! Inner services for the tests: one that checks how it is called, one that answers by a script.

pub mod events;
pub mod plan;
pub mod play;
pub mod probe;
pub mod rig;
pub mod script;
pub mod wire;

/// The code in the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The code in the migration guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../docs/migration.md")]
pub struct Migration;
