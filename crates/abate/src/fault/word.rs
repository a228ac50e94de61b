use abate_core::outcome::Fault;

/// What one error of a chain says, and how firmly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It decides; what is below is only how it came to it.
    Last(Fault),
    /// It holds, whatever is below, unless that has the last word.
    Unless(Fault),
}
