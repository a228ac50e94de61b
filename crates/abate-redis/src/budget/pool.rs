use std::fmt;

const FIELDS: usize = 9;

/// What a pool held when the last process exchanged with it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Pool {
    /// Tokens that any process may have.
    pub tokens: f64,
    /// Calls per second of all processes.
    pub rate: f64,
    /// Retries that were granted ahead of the pace.
    pub level: f64,
    /// Messages per second.
    pub load: f64,
    /// Processes that share it.
    pub processes: u64,
    /// When that was, in microseconds since 1970 by the server's clock.
    pub at: u64,
}

impl Pool {
    /// Nine doubles, the first byte first.
    pub(super) fn unpack(packed: &[u8]) -> Option<Self> {
        let (doubles, []) = packed.as_chunks::<8>() else { return None };
        let fields: [f64; FIELDS] = doubles
            .iter()
            .map(|bytes| f64::from_be_bytes(*bytes))
            .collect::<Vec<_>>()
            .try_into()
            .ok()?;
        let [stock, rate, level, load, at, _, _, counted, before] = fields;
        Some(Self {
            tokens: stock / 1e6,
            rate: rate / 1e6,
            level: level / 1e6,
            load: load / 1e6,
            processes: counted.max(before) as u64,
            at: at as u64,
        })
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, rate, level, load, processes, .. } = self;
        write!(
            f,
            "{tokens:.1} tokens, {processes} processes, {rate:.1} calls/s, {level:.1} retries ahead, \
             {load:.1} messages/s"
        )
    }
}
