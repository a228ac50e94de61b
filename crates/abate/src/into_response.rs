//! What the callers of an axum service see when its own dependency gave no answer.

use std::error::Error as StdError;
use std::time::Instant;

use axum_core::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};

use crate::clock;
use crate::error::{Error, ErrorKind};

/// For handlers that call a dependency and use `?` (feature `axum`).
///
/// | what ended the call | status | `Retry-After` |
/// |---|---|---|
/// | breaker open, cooling down, limit reached, no idempotency key, retry refused | 503 | whole seconds, rounded up, if it is known when |
/// | attempt timeout, deadline | 504 | – |
/// | the client | 502 | – |
///
/// A refusal that a foreign layer wrapped counts as the refusal. The body is one line of plain text
/// for strangers: it says nothing of the source, the URL or the headers, nor which layer refused.
/// Log the error before it is turned into a response.
///
/// # Examples
///
/// ```
/// use std::convert::Infallible;
///
/// use abate::{Policy, ReplayBody, Stack};
/// use axum::{Router, body::Body, routing::get};
/// use http::{Request, Response, StatusCode};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Infallible> {
/// let client = service_fn(async |_: Request<ReplayBody<Body>>| {
///     Ok::<_, Infallible>(Response::new(Body::from("seven left")))
/// });
/// let stack = Stack::new(Policy::default());
/// let breaker = stack.breaker();
/// let stock = stack.layer(client);
///
/// let handler = async || {
///     let answer = stock.oneshot(Request::new(Body::empty())).await?;
///     Ok::<_, abate::Error>(answer.map(Body::new))
/// };
/// let app: Router = Router::new().route("/", get(handler));
///
/// breaker.force_open();
/// let response = app.oneshot(Request::new(Body::empty())).await?;
/// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
/// # Ok(())
/// # }
/// ```
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let cause = innermost(&self);
        let (status, text) = match cause.kind() {
            ErrorKind::BreakerOpen
            | ErrorKind::CoolingDown
            | ErrorKind::LimitReached
            | ErrorKind::NoKey
            | ErrorKind::RetryRefused(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "A service that this one depends on cannot be called just now.\n",
            ),
            ErrorKind::AttemptTimeout | ErrorKind::Deadline => (
                StatusCode::GATEWAY_TIMEOUT,
                "A service that this one depends on did not answer in time.\n",
            ),
            ErrorKind::Client => {
                (StatusCode::BAD_GATEWAY, "A service that this one depends on gave no answer.\n")
            }
        };
        let mut response = (status, text).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE
            && let Some(at) = cause.retry_at().or_else(|| self.retry_at())
            && let Some(seconds) = seconds_until(at)
        {
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

/// The error of ours that all others were made from, foreign layers between them or not.
fn innermost(mut error: &Error) -> &Error {
    while let Some(below) = error.source().and_then(Error::find) {
        error = below;
    }
    error
}

/// None once the time has come: a zero would invite everybody to try at once.
fn seconds_until(at: Instant) -> Option<HeaderValue> {
    let left = at.saturating_duration_since(clock::now());
    // Rounded up: who comes back a moment early is refused once more.
    let seconds = left.as_secs().saturating_add(u64::from(left.subsec_nanos() > 0));
    (seconds > 0).then(|| seconds.into())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use abate_core::session::StopReason;
    use http::header::CONTENT_TYPE;
    use http_body_util::BodyExt;

    use super::*;
    use crate::report::Report;

    const REFUSALS: [ErrorKind; 4] = [
        ErrorKind::BreakerOpen,
        ErrorKind::LimitReached,
        ErrorKind::NoKey,
        ErrorKind::RetryRefused(StopReason::Pace),
    ];

    fn refusal(after: Duration) -> Error {
        Error::new(ErrorKind::BreakerOpen).with_retry_at(Some(clock::now() + after))
    }

    fn retry_after(error: Error) -> Option<String> {
        let response = error.into_response();
        let value = response.headers().get(RETRY_AFTER)?;
        Some(value.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_kind_has_its_status() {
        let status = |kind| Error::new(kind).into_response().status();
        for kind in REFUSALS {
            assert_eq!(status(kind), StatusCode::SERVICE_UNAVAILABLE, "{kind:?}");
        }
        assert_eq!(status(ErrorKind::AttemptTimeout), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(status(ErrorKind::Deadline), StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(status(ErrorKind::Client), StatusCode::BAD_GATEWAY);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_whole_seconds_rounded_up() {
        for (after, expected) in [
            (Duration::from_nanos(1), "1"),
            (Duration::from_secs(1), "1"),
            (Duration::from_millis(1_001), "2"),
            (Duration::from_secs(86_400), "86400"),
        ] {
            assert_eq!(retry_after(refusal(after)).as_deref(), Some(expected), "{after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_counts_from_the_answer_not_from_the_refusal() {
        let error = refusal(Duration::from_secs(5));
        tokio::time::advance(Duration::from_millis(1_500)).await;
        assert_eq!(retry_after(error).as_deref(), Some("4"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_unknown_or_has_come_is_not_told() {
        assert_eq!(retry_after(Error::new(ErrorKind::BreakerOpen)), None);
        assert_eq!(retry_after(refusal(Duration::ZERO)), None);
        let error = refusal(Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(retry_after(error), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_servers_wish_in_the_report_is_passed_on_by_refusals_alone() {
        let with_report = |kind| {
            let mut report = Report::default();
            let at = clock::now() + Duration::from_secs(7);
            report.end(Duration::ZERO, Some(StopReason::Refused), Some(at));
            Error::new(kind).with_report(report)
        };
        for kind in REFUSALS {
            assert_eq!(retry_after(with_report(kind)).as_deref(), Some("7"), "{kind:?}");
        }
        for kind in [ErrorKind::AttemptTimeout, ErrorKind::Deadline, ErrorKind::Client] {
            assert_eq!(retry_after(with_report(kind)), None, "{kind:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_below_foreign_layers_is_still_one() {
        let below = io::Error::other(io::Error::other(refusal(Duration::from_secs(3))));
        let error = Error::from_inner(io::Error::other(Error::from_inner(below)));
        assert_eq!(error.kind(), ErrorKind::Client);
        let response = error.into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[RETRY_AFTER], "3");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_only_the_outer_error_knows_is_told() {
        let error = Error::from_inner(io::Error::other(Error::new(ErrorKind::LimitReached)));
        let at = clock::now() + Duration::from_secs(9);
        assert_eq!(retry_after(error.with_retry_at(Some(at))).as_deref(), Some("9"));
    }

    #[tokio::test]
    async fn nothing_of_the_source_reaches_the_caller() {
        let secret = "http://stock.internal/?key=hunter2 refused";
        let response = Error::from_inner(io::Error::other(secret)).into_response();
        assert_eq!(response.headers().len(), 1, "{:?}", response.headers());
        assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "A service that this one depends on gave no answer.\n");
    }
}
