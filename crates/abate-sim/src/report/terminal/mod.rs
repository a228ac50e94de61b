//! Charts in Unicode, as wide as the terminal.

mod chart;
mod columns;
mod line;
mod page;

#[cfg(test)]
mod tests;

pub use page::terminal;
