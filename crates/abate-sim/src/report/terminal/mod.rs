//! Charts in Unicode, as wide as the terminal.

mod chart;
mod columns;
mod line;
mod page;

pub use page::terminal;
