//! Configuration: what a file says, and whether it can be meant.
//!
//! [`source`] reads tables of any kind and finds all that is wrong at once. [`Policies`] are a file
//! of policies: one section for each dependency.

mod policy;
pub mod source;

pub use self::policy::{Declared, Policies};
