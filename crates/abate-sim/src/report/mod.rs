//! What runs came to, for people and for programs: policies side by side.
//!
//! | function | gives |
//! |---|---|
//! | [`html()`] | one page with plots, which needs nothing else: no script, no other file, no network |
//! | [`terminal()`] | charts in Unicode for a terminal, as wide as it is |
//! | [`verdict()`] | the result in one sentence |
//! | [`csv()`] | one run as a table, a row for each bin |
//! | [`json()`] | the totals of all runs |
//!
//! All of them take what they are given: no run, no bins, a step of no time and names with markup or
//! control characters in them make a report that says less, and never a panic.
//!
//! ```
//! use abate_sim::record::Run;
//! use abate_sim::report::{Comparison, html};
//!
//! let run = Run { name: "default".to_owned(), ..Run::default() };
//! let comparison = Comparison { title: "slow-dependency".to_owned(), runs: vec![run], ..Comparison::default() };
//! assert!(html(&comparison).starts_with("<!DOCTYPE html>"));
//! ```

mod comparison;
mod csv;
mod figures;
mod html;
mod json;
mod number;
mod terminal;
mod verdict;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use comparison::{Comparison, Grid, Map};
pub use csv::csv;
pub use html::html;
pub use json::json;
pub use terminal::terminal;
pub use verdict::verdict;
