//! One retry budget for a whole fleet, shared through Redis or Valkey.

mod clock;
mod endpoint;
#[doc(hidden)]
pub mod link;
mod observe;

pub use endpoint::{Endpoint, EndpointError, Problem};
