//! The rules and limits of calls to one dependency, declared once.
//!
//! A [`Policy`] is always one that can work: what cannot is refused when it is built, all problems
//! at once. Its defaults are in [`defaults`], each with its reason.

mod builder;
mod checks;
pub mod defaults;
mod problem;
mod value;

pub use self::builder::PolicyBuilder;
pub use self::problem::{PolicyError, Problem};
pub use self::value::Policy;

#[cfg(test)]
mod tests;
