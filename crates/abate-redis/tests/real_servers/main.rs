//! Against Redis and Valkey themselves, and through a network that fails. On the real clock; each test waits for what it
//! wants to see. `scripts/test` brings the servers.

mod budget_store;
mod budget_twin;
mod link_network;
mod link_outages;
mod link_refusals;
mod link_scripts;
#[cfg(feature = "tls")]
mod link_tls;
mod support;
