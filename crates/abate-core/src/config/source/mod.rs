//! Tables of a TOML file, read value by value, with every mistake reported at once.
//!
//! A reader takes what it knows from a [`Table`], key by key. What is missing, of the wrong kind or
//! out of range is noted with its line, column, key, and what was expected; the reader goes on.
//! Whatever nobody took is an unknown key, which is noted too when its table is dropped: a mistyped
//! key never means a default. [`read`] hands out the value if nothing was noted.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use abate_core::config::source::{Problems, Table, read};
//!
//! struct Outage { every: Duration, share: f64, hard: bool }
//!
//! fn outages(mut root: Table<'_>) -> Vec<Outage> {
//!     let outage = |mut outage: Table<'_>| Outage {
//!         every: outage.take("every").required().duration().unwrap_or_default(),
//!         share: outage.take("share").ratio().map_or(1.0, |share| share.as_f64()),
//!         hard: outage.take("how").word(&[("hard", true), ("soft", false)]).unwrap_or(true),
//!     };
//!     root.take("outage").tables().into_iter().map(outage).collect()
//! }
//!
//! let good = "[[outage]]\nevery = '30s'\n";
//! assert_eq!(read("storm.toml", good.as_bytes(), outages)?.len(), 1);
//!
//! let wrong = "[[outage]]\nevery = 30\nshar = 0.5\nhow = 'harsh'\n";
//! let problems: Problems = read("storm.toml", wrong.as_bytes(), outages).err().ok_or("refused")?;
//! assert_eq!(
//!     problems.to_string(),
//!     "storm.toml:2:9: outage[0].every: the unit is missing: expected a duration such as \"200ms\", \
//!      \"1.5s\" or \"2m\", got 30\n\
//!      storm.toml:3:1: outage[0].shar: unknown key; did you mean `share`?\n\
//!      storm.toml:4:7: outage[0].how: expected one of `hard`, `soft`, got \"harsh\"; did you mean `hard`?"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod document;
mod nearest;
mod problem;
mod table;
mod value;

pub use self::nearest::nearest;
pub use self::problem::{Problem, Problems};
pub use self::table::{Section, Table, read};
pub use self::value::Value;

#[cfg(test)]
mod tests;
