//! One retry budget for a whole fleet, shared through Redis or Valkey.

mod budget;
mod clock;
mod endpoint;
#[doc(hidden)]
pub mod link;
mod observe;

pub use budget::{Pool, RedisStore};
pub use endpoint::{Endpoint, EndpointError, Problem};
