//! What the simulator must come to: published models and measurements, run again with the shipped
//! decisions beside other people's.
//!
//! Each experiment has a file of its own, which says where its figures come from.

mod all;
mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;
mod e09;
mod e10;
mod e11;
mod e12;
mod e14;
mod e15;
mod experiment;
mod family;
mod line;
mod parts;

pub use self::all::EXPERIMENTS;
pub use self::experiment::Experiment;
pub use self::line::{Expected, Line, Verdict};
