//! Headers that tell of a quota, of which the moment when it is available again is of interest.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, List, ListEntry, Parser};

use super::clock::ServerClock;
use super::number::{go_duration, millis, seconds};
use super::sources::ResetUnit;

/// The wait that a header of the `x-ratelimit-reset` family asks for.
pub(super) fn reset<W: FnOnce() -> SystemTime>(
    value: &[u8],
    unit: ResetUnit,
    clock: &mut ServerClock<'_, W>,
) -> Option<Duration> {
    let value = value.trim_ascii();
    let since_epoch = match unit {
        ResetUnit::Seconds => return seconds(value),
        ResetUnit::GoDuration => return go_duration(value),
        ResetUnit::EpochSeconds => seconds(value)?,
        ResetUnit::EpochMillis => millis(value)?,
    };
    let now = clock.now()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(since_epoch.saturating_sub(now))
}

/// The longest wait for a quota of which nothing remains; `None` where some remains of each, or
/// where nothing can be read.
pub(super) fn ratelimit(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(&RATELIMIT).iter();
    values.filter_map(|value| longest(value.as_bytes())).max()
}

fn longest(value: &[u8]) -> Option<Duration> {
    let list: List = Parser::new(value).parse().ok()?;
    let waits = list.iter().filter_map(|entry| {
        let ListEntry::Item(item) = entry else { return None };
        let parameter = |name: &str| match item.params.get(name) {
            Some(BareItem::Integer(number)) => u64::try_from(i64::from(*number)).ok(),
            _ => None,
        };
        (parameter("r")? == 0).then(|| parameter("t").map(Duration::from_secs))?
    });
    waits.max()
}

static RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
