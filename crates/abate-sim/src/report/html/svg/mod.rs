//! The little that the plots need of SVG: scales, stepped lines and areas, and a frame whose text keeps
//! its size.

mod plot;
mod scale;
mod steps;
mod strip;
mod thin;

pub(super) use plot::{Plot, Shade, Tick, level, percent};
pub(super) use scale::Scale;
pub(super) use steps::{HEIGHT, Steps, WIDTH};
pub(super) use strip::strip;
