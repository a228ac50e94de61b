use std::error::Error as StdError;
use std::io;

/// Chains are short; one that goes in a circle is not followed for ever.
const DEEPEST: usize = 32;

/// An error and all its sources, also those that it holds and its `source` skips.
pub(crate) fn chain<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| below(*error)).take(DEEPEST)
}

fn below<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a (dyn StdError + 'static)> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        return io.get_ref().map(|inner| inner as _);
    }
    #[cfg(feature = "h2")]
    if let Some(h2) = error.downcast_ref::<h2::Error>() {
        return h2.get_io().map(|io| io as _);
    }
    error.source()
}
