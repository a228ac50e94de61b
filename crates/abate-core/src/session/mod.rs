//! One call's life: what happened goes in, what to do next comes out.
//!
//! The only place where the order is written: classify → safety → attempts → delay and deadline →
//! budget. Layers, queue workers and the simulator carry out the same decisions.

mod call;
mod decision;

pub use self::call::{Bounds, Session, Traits};
pub use self::decision::{Decision, Retry, Stop, StopReason};

#[cfg(test)]
mod tests;
