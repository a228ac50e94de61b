//! Where calls come from.

/// Where the calls of a group come from.
#[derive(Debug)]
pub(super) struct Source {
    /// The number of its first client among all.
    pub(super) first_client: u32,
    pub(super) first_process: u32,
    /// The calls that were begun, by which the next is drawn.
    pub(super) begun: u64,
}

impl Source {
    pub(super) const fn new(first_client: u32, first_process: u32) -> Self {
        Self { first_client, first_process, begun: 0 }
    }
}
