//! Servers of our own, a network between us and them that can fail, and what was told to people meanwhile.

mod proxy;
mod rig;
mod server;
mod told;

pub(crate) use proxy::{Direction, Proxy};
pub(crate) use rig::{Rig, call, counting};
pub(crate) use server::{Kind, Server};
pub(crate) use told::Told;
