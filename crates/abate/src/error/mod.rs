//! The one error of all services here.

mod kind;
mod value;

pub use self::kind::ErrorKind;
pub use self::value::{BoxError, Error};

#[cfg(test)]
mod tests;
