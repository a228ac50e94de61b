use std::time::SystemTime;

use http::HeaderMap;
use http::header::{AGE, DATE};

/// The moment at which the server wrote its moments, worked out at most once.
///
/// The response's own `Date`, so that a skewed local clock does no harm; the local wall clock only
/// where there is none, or where `Age` says that the response comes out of a cache (RFC 9111
/// section 5.1).
pub(super) struct ServerClock<'a, W> {
    headers: &'a HeaderMap,
    wall: Option<W>,
    now: Option<SystemTime>,
}

impl<'a, W: FnOnce() -> SystemTime> ServerClock<'a, W> {
    pub(super) const fn new(headers: &'a HeaderMap, wall: W) -> Self {
        Self { headers, wall: Some(wall), now: None }
    }

    pub(super) fn now(&mut self) -> Option<SystemTime> {
        if self.now.is_none() {
            self.now = self.date().or_else(|| self.wall.take().map(|wall| wall()));
        }
        self.now
    }

    fn date(&self) -> Option<SystemTime> {
        let date = self.headers.get(DATE)?;
        let aged = self.headers.get(AGE).is_some_and(|age| age.as_bytes() != b"0");
        if aged { None } else { http_date(date.as_bytes()) }
    }
}

pub(super) fn http_date(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}
