//! The decisions of [abate](https://docs.rs/abate): may this call be repeated, when, and may it be made at all?
//!
//! Everything here is a pure state machine. Nothing waits, spawns, or reads a clock: the current
//! time is an argument and a decision is a value, so that a tower layer, a queue worker, a
//! simulator and a test all drive the very same code.
//!
//! The modules form a ladder, and each imports only from lines above its own:
//!
//! | rung | modules | the question it answers |
//! |---|---|---|
//! | 0 | [`ratio`], [`rng`], [`deadline`], [`decay`], [`striped`], `sync` | how much, which number, how long, how fast it fades; held by many threads; std's atomics or loom's |
//! | 1 | [`outcome`], [`spare`] | what happened? is one free? |
//! | 2 | [`retry_after`], [`safety`] | what did the server ask for? may it be repeated? |
//! | 3 | [`classify`] | is that a success, a failure, or neither? |
//! | 4 | [`backoff`], [`budget`], [`breaker`], [`cooldown`], [`grpc`] | when? may we spend one more? may we call at all, and now? what does gRPC mean? |
//! | 5 | [`fleet`] | may all of us spend one more? |
//! | 6 | [`policy`] | the rules and limits, declared once |
//! | 7 | [`session`] | one call's life, and the only place where all of the above meet |
//! | 8 | `config` (feature `serde`) | what does the file say? |
//!
//! Most users want the `abate` crate, which carries these decisions out over hyper and re-exports
//! what is needed from here.

pub mod ratio;

pub mod deadline;
pub mod decay;
pub mod rng;
pub mod striped;
mod sync;

pub mod outcome;
pub mod spare;

pub mod retry_after;
pub mod safety;

pub mod classify;

pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod cooldown;
pub mod grpc;

pub mod fleet;

pub mod policy;

pub mod session;

#[cfg(feature = "serde")]
pub mod config;
