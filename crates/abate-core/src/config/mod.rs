//! Configuration: what a file says, and whether it can be meant.
//!
//! [`source`] reads tables of any kind and finds all that is wrong at once.

pub mod source;
