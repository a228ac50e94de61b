//! What a call pays for what is laid over its client, without a network.

mod caller;
mod client;
mod counts;
mod gate;
mod operations;
mod peers;
mod scenario;
mod subjects;
mod table;
mod targets;
mod times;

pub use self::counts::one;
pub use self::gate::{check, record};
pub use self::scenario::Scenario;
pub use self::table::markdown;
