use std::time::{Duration, Instant};

use abate_core::classify::{Classifier, Statuses, Verdict};
use abate_core::deadline::Deadline;
use abate_core::outcome::Outcome;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;

use crate::error::ErrorKind;

/// What is a stream by its media type, with whatever follows (`+proto`, `; charset`).
const STREAMS: [&str; 3] = ["text/event-stream", "application/grpc", "multipart/x-mixed-replace"];

/// What a layer is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) cap: usize,
    pub(super) read_timeout: Duration,
}

impl Terms {
    /// Whether the body is to be read.
    pub(super) fn reads<B: Body>(self, response: &Response<B>) -> bool {
        let (status, body) = (response.status(), response.body());
        !body.is_end_stream()
            && status != StatusCode::NO_CONTENT
            && status != StatusCode::NOT_MODIFIED
            && body.size_hint().lower() <= self.cap as u64
            && !has_failed(response)
            && !is_stream(response.headers())
    }

    /// When reading ends that begins at `now`, and what it is then.
    pub(super) fn end(self, now: Instant, deadline: Deadline) -> (Deadline, ErrorKind) {
        let own = Deadline::after(now, self.read_timeout);
        if own == deadline.earlier(own) {
            (own, ErrorKind::AttemptTimeout)
        } else {
            (deadline, ErrorKind::Deadline)
        }
    }
}

/// By its head: a retry above would discard it, and drain it while it waits.
fn has_failed<B>(response: &Response<B>) -> bool {
    let verdict = Classifier::new(Statuses::TRANSIENT).verdict(&Outcome::of(response));
    matches!(verdict, Verdict::Transient(_))
}

fn is_stream(headers: &HeaderMap) -> bool {
    let Some(given) = headers.get(CONTENT_TYPE) else { return false };
    STREAMS.iter().any(|stream| {
        let start = given.as_bytes().get(..stream.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(stream.as_bytes()))
    })
}
