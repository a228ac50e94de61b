//! Atomics and locks under one name: the standard library's, or in models (tests built with
//! `--cfg loom`) those of loom, which runs a model in every order that its threads can meet in.

#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64},
};

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU32, AtomicU64},
};

/// Runs a model in all orders with at most so many forced switches between its threads, and tells
/// how many they were.
#[cfg(test)]
#[cfg(loom)]
pub(crate) fn model(name: &str, switches: usize, run: impl Fn() + Send + Sync + 'static) {
    use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    // What leads up to a model counts as well: a trip reads forty words.
    builder.max_branches = 10_000;
    let runs = std::sync::Arc::new(Count::new(0));
    let counted = std::sync::Arc::clone(&runs);
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        run();
    });
    println!("{name}: {} orders", runs.load(Relaxed));
}
