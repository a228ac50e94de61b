use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::clock::{ServerClock, http_date};
use super::number::{millis, seconds};
use super::pushback::{Pushback, PushbackHeader};
use super::quota;
use super::sources::{GRPC_PUSHBACK, HintSources};

/// What the headers of a response say about coming back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    pushback: Option<Pushback>,
    malformed: bool,
    again: Option<bool>,
}

impl Hint {
    /// Nothing was said.
    pub const ABSENT: Self = Self { pushback: None, malformed: false, again: None };

    /// Reads the headers of a response from the `sources` that its dependency uses.
    ///
    /// gRPC's pushback prevails, then `Retry-After` in whichever unit (of several values the
    /// longest, so that none of them is knocked at early), then quotas. `wall`, the local wall
    /// clock, is asked only by a moment that the response's own `Date` cannot be held against.
    #[must_use]
    pub fn read(
        headers: &HeaderMap,
        sources: &HintSources,
        wall: impl FnOnce() -> SystemTime,
    ) -> Self {
        let mut hint = Self::ABSENT;
        if sources.should_retry {
            hint.again = should_retry(headers);
        }
        if sources.grpc_pushback && hint.grpc_pushback(headers) {
            return hint;
        }
        let mut clock = ServerClock::new(headers, wall);
        // One walk, which passes ten headers in the time that it takes to look up two.
        for (name, value) in headers {
            if *name == RETRY_AFTER {
                hint.note(PushbackHeader::RetryAfter, retry_after(value, &mut clock));
            } else if *name == RETRY_AFTER_MS {
                hint.note(PushbackHeader::RetryAfterMs, millis(value.as_bytes().trim_ascii()));
            }
        }
        if hint.pushback.is_some() {
            return hint;
        }
        if let Some((name, unit)) = &sources.reset {
            for value in headers.get_all(name) {
                let wait = quota::reset(value.as_bytes(), *unit, &mut clock);
                hint.note(PushbackHeader::RateLimitReset, wait);
            }
        }
        if sources.ratelimit
            && let Some(wait) = quota::ratelimit(headers)
        {
            hint.note(PushbackHeader::RateLimit, Some(wait));
        }
        hint
    }

    /// When to come back, where the server said so.
    #[must_use]
    pub const fn pushback(self) -> Option<Pushback> {
        self.pushback
    }

    /// Whether a header was there that could not be read, and was ignored.
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        self.malformed
    }

    /// `Some(false)` where the server forbids a retry, `Some(true)` where it asks for one whatever
    /// the status.
    #[must_use]
    pub const fn again(self) -> Option<bool> {
        self.again
    }

    fn note(&mut self, header: PushbackHeader, delay: Option<Duration>) {
        match delay.map(|delay| Pushback::of(delay, header)) {
            Some(pushback) => {
                self.pushback = Some(self.pushback.map_or(pushback, |it| it.longer(pushback)));
            }
            None => self.malformed = true,
        }
    }

    fn grpc_pushback(&mut self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(&GRPC_PUSHBACK) else { return false };
        match millis(value.as_bytes().trim_ascii()) {
            Some(delay) => self.note(PushbackHeader::GrpcPushback, Some(delay)),
            // gRFC A6: negative, or not a number, means never.
            None => self.again = Some(false),
        }
        true
    }
}

fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get(&SHOULD_RETRY)?.as_bytes().trim_ascii() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

fn retry_after<W: FnOnce() -> SystemTime>(
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

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
