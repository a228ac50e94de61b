//! Keys for operations, where they may be made, and what else makes a request one that may be repeated.

mod idempotency_allocations;
mod idempotency_keys;
mod idempotency_places;
mod idempotency_rules;

use abate::{Jitter, Policy, PolicyBuilder, RetryLayer};
use abate_tests::script::{Answer, Arrived, Script};
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::Full;
use tower::BoxError;

type Tested = Result<(), BoxError>;

/// Three attempts at set times, and a budget for as many as there are.
fn policy() -> PolicyBuilder {
    Policy::builder().with_jitter(Jitter::None).with_budget_floor(1e6)
}

fn retry() -> Result<RetryLayer, BoxError> {
    Ok(RetryLayer::new(policy().build()?))
}

/// Answers 503 twice, and then 200 for ever.
fn busy_twice() -> Script {
    Script::of([503, 503, 200].map(Answer::status))
}

fn request(method: Method, uri: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from("7 EUR"));
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_static(uri);
    request
}

fn post() -> Request<Full<Bytes>> {
    request(Method::POST, "http://bank.test/payments")
}

/// The keys that arrived, as text; more than one in a request make the test fail.
fn keys(script: &Script) -> Vec<Option<String>> {
    script.arrived().iter().map(|arrived| values(arrived, "idempotency-key").pop()).collect()
}

fn values(arrived: &Arrived, name: &str) -> Vec<String> {
    let values = arrived.headers.get_all(name).iter();
    let values: Vec<_> =
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    assert!(values.len() <= 1, "{values:?}");
    values
}
