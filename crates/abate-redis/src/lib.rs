//! One retry budget for a whole fleet, shared through Redis or Valkey.

mod endpoint;
#[doc(hidden)]
pub mod link;

pub use endpoint::{Endpoint, EndpointError, Problem};
