/// Millionths: the unit of tokens, slots and calls in messages and pools. All of them stay below 2^53,
/// so that a store that has only doubles counts them exactly.
pub(super) const MICRO: u64 = 1_000_000;

/// The most that one message can carry of anything.
pub(super) const MOST: u64 = 1 << 50;

/// What a process tells the pool, and asks of it.
///
/// It must reach the pool once or not at all: sent twice it would make tokens of nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Message {
    /// The number by which the answer is known; the pool does not look at it.
    pub number: u64,
    /// Tokens that the process hands over, in millionths.
    pub deposit: u64,
    /// Calls that the pool was not told of yet, in millionths.
    pub calls: u64,
    /// Whole tokens that the process asks for.
    pub want: u64,
    /// The generation of the pool that last counted this process; 0 if none did.
    pub generation: u64,
    /// The epoch of that count.
    pub epoch: u64,
}

/// What the pool answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reply {
    /// Whole tokens that the process may spend.
    pub grant: u64,
    /// Microseconds until the first of them may be sent.
    pub first: u64,
    /// Microseconds between two of them.
    pub gap: u64,
    /// Tokens that are left in the pool, in millionths.
    pub stock: u64,
    /// Processes that the fleet has, as far as was counted; at least 1.
    pub processes: u64,
    /// In which count this process is now.
    pub epoch: u64,
    /// Which pool it is: another number after a restart without memory.
    pub generation: u64,
    /// Messages per second that the pool gets, in millionths.
    pub load: u64,
    /// The pool's clock, in microseconds.
    pub now: u64,
}
