//! Bodies: requests that can be sent again, and responses that hold what must last as long as
//! they are read.

mod carry;
mod held;
mod reel;
mod replay;
mod response;
mod tape;

pub(crate) use self::carry::poll_answer;
#[doc(hidden)]
pub use self::carry::{Answer, Carry, Merge, Pass, Relay, Slot, Wrap};
#[doc(hidden)]
pub use self::held::Held;
pub use self::replay::ReplayBody;
pub use self::response::ResponseBody;
pub(crate) use self::tape::Tape;

#[cfg(test)]
mod tests;
