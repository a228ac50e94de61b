//! What a server says about coming back: header bytes in, a [`Pushback`] out.
//!
//! `Retry-After` (RFC 9110 section 10.2.3) in seconds and in the three forms of HTTP-date. It is
//! read leniently where leniency keeps its meaning (a fraction is rounded up, to the next
//! millisecond) and ignored where it is malformed. Nothing here fails, and no number is too large.

use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};

/// A server's wish not to be called again before some time has passed.
///
/// `abate`'s `RetryAfterLayer` puts it into the extensions of a response for other layers, and
/// other people's retries, to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pushback {
    delay: Duration,
}

impl Pushback {
    /// A pushback of `delay` from the moment the response arrived.
    #[must_use]
    pub const fn new(delay: Duration) -> Self {
        Self { delay }
    }

    /// How long to stay away, from the moment the response arrived. Zero when the server's date
    /// has passed already.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }
}

/// What the headers of a response hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// No header that says when to come back.
    Absent,
    /// There is one, and it cannot be read; it is as good as absent.
    Malformed,
    /// The server asked to be left alone for a while.
    Pushback(Pushback),
}

impl Hint {
    /// Reads the headers of a response.
    ///
    /// A date is measured against the response's own `Date`, so that a skewed local clock does no
    /// harm; `wall`, the local wall clock, is asked only when there is none or when `Age` says
    /// that the response comes out of a cache (RFC 9111 section 5.1). Of several values the
    /// longest counts: none of them is knocked at early.
    #[must_use]
    pub fn read(headers: &HeaderMap, wall: impl FnOnce() -> SystemTime) -> Self {
        let mut values = headers.get_all(RETRY_AFTER).iter();
        let Some(first) = values.next() else { return Self::Absent };
        let mut clock = ServerClock { headers, wall: Some(wall), now: None };
        let longest =
            values.fold(delay(first, &mut clock), |most, value| most.max(delay(value, &mut clock)));
        longest.map_or(Self::Malformed, |delay| Self::Pushback(Pushback { delay }))
    }

    /// The pushback, where there is one.
    #[must_use]
    pub const fn pushback(self) -> Option<Pushback> {
        match self {
            Self::Pushback(pushback) => Some(pushback),
            Self::Absent | Self::Malformed => None,
        }
    }
}

/// The moment at which the server wrote its date, worked out at most once.
struct ServerClock<'a, W> {
    headers: &'a HeaderMap,
    wall: Option<W>,
    now: Option<SystemTime>,
}

impl<W: FnOnce() -> SystemTime> ServerClock<'_, W> {
    fn now(&mut self) -> Option<SystemTime> {
        if self.now.is_none() {
            self.now = self.date().or_else(|| self.wall.take().map(|wall| wall()));
        }
        self.now
    }

    fn date(&self) -> Option<SystemTime> {
        let aged = self.headers.get(AGE).is_some_and(|age| age.as_bytes() != b"0");
        if aged { None } else { http_date(self.headers.get(DATE)?.as_bytes()) }
    }
}

fn delay<W: FnOnce() -> SystemTime>(
    value: &HeaderValue,
    clock: &mut ServerClock<'_, W>,
) -> Option<Duration> {
    let value = value.as_bytes().trim_ascii();
    if value.first()?.is_ascii_digit() {
        return seconds(value);
    }
    let at = http_date(value)?;
    Some(at.duration_since(clock.now()?).unwrap_or(Duration::ZERO))
}

/// `1*DIGIT`, and leniently `1*DIGIT "." 1*DIGIT`. What is too large for any clock saturates.
fn seconds(value: &[u8]) -> Option<Duration> {
    let dot = value.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match dot {
        Some(dot) => (&value[..dot], Some(&value[dot + 1..])),
        None => (value, None),
    };
    let seconds = Duration::from_secs(number(whole)?);
    let Some(fraction) = fraction else { return Some(seconds) };
    if fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (kept, dropped) = fraction.split_at(fraction.len().min(3));
    let scale = 10_u64.pow(3 - kept.len() as u32);
    let beyond = dropped.iter().any(|digit| *digit != b'0');
    let millis = number(kept)? * scale + u64::from(beyond);
    Some(seconds.saturating_add(Duration::from_millis(millis)))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    }))
}

fn http_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

#[cfg(test)]
mod tests;
