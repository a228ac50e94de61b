//! Circuit breakers by hand, by key, half-open, and with calls that are slow.

mod breakers_half_open;
mod breakers_handle;
mod breakers_scope;
mod breakers_slow;

use std::time::Duration;

use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Policy};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Full;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

fn layer() -> CircuitBreakerLayer {
    CircuitBreakerLayer::new(Policy::default()).with_seed(1)
}

fn up() -> Script {
    Script::of([Answer::status(200)])
}

fn down() -> Script {
    Script::of([Answer::status(503)])
}

/// A request to `host`.
fn to(host: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::try_from(format!("http://{host}/")).unwrap_or_default();
    request
}

fn get() -> Request<Full<Bytes>> {
    to("a.test")
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

/// Fails on `host` ten times a second, for three seconds, whatever is answered.
async fn fail(breaker: &CircuitBreakerLayer, host: &str) {
    let service = breaker.layer(down());
    for _ in 0..30 {
        drop(service.clone().oneshot(to(host)).await);
        sleep(millis(100)).await;
    }
}

/// Opens it, and sleeps until a call would be let through.
async fn due(breaker: &CircuitBreakerLayer) {
    let service = breaker.layer(down());
    while breaker.handle().state() == BreakerState::Closed {
        drop(service.clone().oneshot(get()).await);
        sleep(millis(100)).await;
    }
    reopening(breaker).await;
}

/// Sleeps until the next probe is due.
async fn reopening(breaker: &CircuitBreakerLayer) {
    if let Err(error) = breaker.layer(up()).oneshot(get()).await {
        sleep_until(error.retry_at().map_or_else(Instant::now, Into::into)).await;
    }
}
