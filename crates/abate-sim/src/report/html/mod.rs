//! The page. From the top: what happened, how each policy fared, and then one section for each question,
//! with a panel for each policy. Panels of one section have the same axes.

mod attempts;
mod map;
mod over_time;
mod page;
mod panels;
mod section;
mod strips;
mod summary;
mod svg;
mod times;

#[cfg(test)]
mod tests;

pub use page::html;
