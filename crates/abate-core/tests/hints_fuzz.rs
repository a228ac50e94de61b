//! Headers by the million: nothing that a server writes makes the reader panic, and no number is
//! read as less than it says.
//!
//! A million in a debug build, ten million in a release build (`.ci/run` runs both).

use std::cell::Cell;
use std::time::{Duration, UNIX_EPOCH};

use abate_core::retry_after::{Hint, HintSources, PushbackHeader, ResetUnit};
use http::{HeaderMap, HeaderName, HeaderValue};

const HEADERS: u32 = if cfg!(debug_assertions) { 1_000_000 } else { 10_000_000 };

/// Wednesday, 2031-03-05T12:00:00Z.
const NOW: Duration = Duration::from_secs(1_930_478_400);

/// Valid values of every form; each is sent, changed and unchanged, under every name.
const CORPUS: [&str; 28] = [
    "0",
    "7",
    "120",
    "2147483648",
    "9999999999",
    "18446744073709551616",
    "99999999999999999999999999999999",
    "1.5",
    "0.001",
    "9223372036854775808.999999999",
    "-1",
    "Wed, 05 Mar 2031 12:00:30 GMT",
    "Wednesday, 05-Mar-31 12:00:30 GMT",
    "Wed Mar  5 12:00:30 2031",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "1930478405",
    "1930478405000",
    "6m0s",
    "1h2m3.5s",
    "12ms",
    "1500us",
    "9999999999h59m1ns",
    "\"default\";r=0;t=30",
    "\"hour\";r=7;t=600, \"second\";r=0;t=999999999999999",
    "\"a\";r=0;t=1;pk=:cHsdsRa894==:",
    "true",
    "false",
];

/// What is put in, so that a change leads from one form to another or nearly to one.
const BYTES: &[u8] = b"0123456789999....--+;=:, \"\tabeghmnrstuGMTx\x80\xb5\xc2\xff";

const NAMES: [&str; 8] = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-reset",
    "ratelimit",
    "grpc-retry-pushback-ms",
    "x-should-retry",
    "date",
    "age",
];

#[test]
fn no_header_is_read_with_a_panic_and_no_number_as_less_than_it_says() {
    let mut dice = Dice(1);
    let names = NAMES.map(HeaderName::from_static);
    let units = [
        ResetUnit::Seconds,
        ResetUnit::EpochSeconds,
        ResetUnit::EpochMillis,
        ResetUnit::GoDuration,
    ];
    let sources = units.map(|unit| {
        let sources = HintSources::new().with_reset(names[2].clone(), unit);
        (unit, sources.with_ratelimit().with_grpc_pushback().with_should_retry())
    });
    let (mut headers, mut value) = (HeaderMap::new(), Vec::new());
    let (mut sent, mut understood, mut huge) = (0, 0, 0_u64);
    while sent < HEADERS {
        headers.clear();
        // Mostly one, since of several the more important one hides the others.
        let together = if dice.roll(4) == 0 { 1 + dice.roll(4) } else { 1 };
        for _ in 0..together {
            write(&mut dice, &mut value);
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(&names[dice.roll(NAMES.len())], value);
                sent += 1;
            }
        }
        let (unit, sources) = &sources[dice.roll(sources.len())];
        let clock_read = Cell::new(false);
        let hint = Hint::read(&headers, sources, || {
            clock_read.set(true);
            UNIX_EPOCH + NOW
        });
        understood += u64::from(hint.pushback().is_some());
        for (name, value) in &headers {
            huge += u64::from(check(hint, name, value, *unit, clock_read.get(), &headers));
        }
    }
    println!("{sent} headers, {understood} waits, {huge} huge numbers");
    assert!(understood > u64::from(HEADERS) / 10, "mostly nonsense");
    assert!(huge > u64::from(HEADERS) / 100, "few huge numbers");
}

/// Makes a header value: one of the corpus, changed in up to three places, or random bytes.
fn write(dice: &mut Dice, value: &mut Vec<u8>) {
    value.clear();
    if dice.roll(16) == 0 {
        value.extend((0..dice.roll(24)).map(|_| dice.roll(256) as u8));
        return;
    }
    value.extend(CORPUS[dice.roll(CORPUS.len())].as_bytes());
    for _ in 0..dice.roll(4) {
        let (at, byte) = (dice.roll(value.len() + 1), BYTES[dice.roll(BYTES.len())]);
        match dice.roll(6) {
            0 => value.truncate(at),
            1 if at < value.len() => drop(value.remove(at)),
            2 | 3 if at < value.len() => value[at] = byte,
            4 => {
                // One digit more, over and over: the way to numbers beyond every type.
                let digit = b'0' + dice.roll(10) as u8;
                value.splice(at..at, std::iter::repeat_n(digit, dice.roll(30)));
            }
            _ => value.insert(at, byte),
        }
    }
}

/// Holds a hint against one of the headers that it was read from; whether that is a huge number.
fn check(
    hint: Hint,
    name: &HeaderName,
    value: &HeaderValue,
    unit: ResetUnit,
    clock_read: bool,
    headers: &HeaderMap,
) -> bool {
    let Some(whole) = stated(value.as_bytes()) else { return false };
    let pushback = hint.pushback();
    // gRPC's first value alone is read, and quotas only where no Retry-After was.
    let read = match (name.as_str(), pushback.map(|it| it.header())) {
        ("grpc-retry-pushback-ms", _) => headers.get(name) == Some(value),
        (_, Some(PushbackHeader::GrpcPushback)) => false,
        _ if hint.again() == Some(false) && pushback.is_none() => false,
        ("retry-after" | "retry-after-ms", _) => true,
        (_, Some(PushbackHeader::RetryAfter | PushbackHeader::RetryAfterMs)) => false,
        ("x-ratelimit-reset", _) => unit != ResetUnit::GoDuration,
        _ => false,
    };
    if !read {
        return false;
    }
    let least = match (name.as_str(), unit) {
        ("retry-after", _) => Some(whole),
        ("retry-after-ms" | "grpc-retry-pushback-ms", _) => Some(whole / 1_000),
        (_, ResetUnit::Seconds) => Some(whole),
        (_, ResetUnit::EpochSeconds) if clock_read => Some(whole.saturating_sub(NOW.as_secs())),
        (_, ResetUnit::EpochMillis) if clock_read => {
            Some((whole / 1_000).saturating_sub(NOW.as_secs()))
        }
        // By the server's own clock, which is any.
        _ => None,
    };
    let Some(least) = least else { return false };
    let wait = pushback.map(|it| it.delay());
    assert!(wait.is_some_and(|wait| wait.as_secs() >= least), "{headers:?}: {hint:?}");
    true
}

/// The whole part of a plain number of ten digits or more, read in another way than by the reader.
fn stated(value: &[u8]) -> Option<u64> {
    let text = str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let plain = |digits: &str| !digits.is_empty() && digits.chars().all(|it| it.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || whole.trim_start_matches('0').len() < 10 {
        return None;
    }
    // Only a number that is too large is no number here.
    Some(whole.parse().unwrap_or(u64::MAX))
}

/// Seeded choices: an xorshift, since ten million headers take a hundred million of them.
struct Dice(u64);

impl Dice {
    /// One of `0..sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }
}
