//! What the benches share.

pub mod outage;
pub mod overhead;
pub mod peers;
pub mod report;
