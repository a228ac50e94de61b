//! What each of the other layers does by itself, and all of them together.

mod layers_breaker;
mod layers_hints;
mod layers_limit;
mod layers_stack;
mod layers_timeouts;
mod layers_verdicts;

use std::time::Duration;

use abate::{Deadline, ErrorKind};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::Instant;
use tower::BoxError;

type Tested = Result<(), BoxError>;

fn get() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::from_static("http://a.test/one");
    request
}

/// A request that its caller waits for no longer than `length`.
fn get_within(length: Duration) -> Request<Full<Bytes>> {
    let mut request = get();
    request.extensions_mut().insert(Deadline::after(Instant::now().into_std(), length));
    request
}

fn kind<T>(result: &Result<T, abate::Error>) -> Option<ErrorKind> {
    result.as_ref().err().map(abate::Error::kind)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
