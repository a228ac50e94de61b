/// How long a call counts as in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Hold {
    /// Until its response body has been read to the end, or is dropped: what a connection, and the
    /// dependency, are busy for.
    #[default]
    Body,
    /// Until its response head is there: for streams that last (gRPC, server-sent events).
    Head,
}
