//! Policies in a file.

mod declared;
mod draft;
mod parts;
mod policies;
mod waits;

pub use self::declared::Declared;
pub use self::policies::Policies;

#[cfg(test)]
mod tests;
