//! Bodies: requests that can be sent again, and responses that hold what must last as long as
//! they are read.

mod carry;
mod guard;
mod replay;
mod response;

#[doc(hidden)]
pub use self::carry::{Carry, Merge, Wrap};
#[doc(hidden)]
pub use self::guard::Held;
pub use self::replay::ReplayBody;
pub use self::response::ResponseBody;

#[cfg(test)]
mod tests;
