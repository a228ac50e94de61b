//! What a key costs, counted on one thread that polls by itself.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll, Waker};

use abate::{IdempotencyKeyLayer, Policy, Stack};
use allocation_counter::measure;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use tower::{Layer, Service, ServiceBuilder};

use super::{post, request};

/// Answers at once, without an allocation.
#[derive(Debug, Clone)]
struct Bare;

impl<B> Service<Request<B>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(request);
        ready(Ok(Response::new(Full::default())))
    }
}

/// With as many headers as a request usually has.
fn usual(method: Method) -> Request<Full<Bytes>> {
    let mut request = request(method, "http://bank.test/payments");
    for (name, value) in [("content-type", "application/json"), ("accept", "*/*"), ("x-id", "7")] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    request
}

fn keyed() -> Request<Full<Bytes>> {
    let mut request = usual(Method::POST);
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("order-7"));
    request
}

const NAMES: [&str; 8] = ["x-a", "x-b", "x-c", "x-d", "x-e", "x-f", "x-g", "x-h"];

/// A kibibyte, and eight headers made at run time.
fn large(method: Method, key: Option<&'static str>) -> Request<Full<Bytes>> {
    let mut request = request(method, "http://bank.test/payments");
    *request.body_mut() = Full::new(Bytes::from(vec![7; 1024]));
    for (nth, name) in NAMES.into_iter().enumerate().skip(usize::from(key.is_some())) {
        let value = HeaderValue::from(1_000 + nth);
        request.headers_mut().insert(HeaderName::from_static(name), value);
    }
    if let Some(key) = key {
        request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
    }
    request
}

/// The allocations of each of some calls.
fn allocated<L>(layer: &L, make: fn() -> Request<Full<Bytes>>) -> Vec<u64>
where
    L: Layer<Bare>,
    L::Service: Service<Request<Full<Bytes>>>,
{
    let mut service = layer.layer(Bare);
    let mut call = || {
        let request = make();
        let info = measure(|| {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(service.poll_ready(&mut cx).is_ready());
            let mut call = std::pin::pin!(service.call(request));
            assert!(matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
        });
        info.count_total
    };
    // The first finds the system's generator, and fills the pool of the thread.
    call();
    (0..5).map(|_| call()).collect()
}

#[test]
fn a_key_costs_one_allocation_and_none_is_free() {
    let layer = IdempotencyKeyLayer::new();
    assert_eq!(allocated(&layer, || usual(Method::POST)), [1; 5]);
    assert_eq!(allocated(&layer.clone().quoted().visible(), || usual(Method::PATCH)), [1; 5]);
    assert_eq!(allocated(&layer, keyed), [0; 5], "the caller's own");
    assert_eq!(allocated(&layer, || usual(Method::GET)), [0; 5]);
    // A header map that was empty needs two for itself.
    assert_eq!(allocated(&layer, post), [3; 5]);
}

#[test]
fn above_a_stack_only_a_key_that_is_made_costs_anything() {
    let layers = ServiceBuilder::new().layer(IdempotencyKeyLayer::new());
    let layers = layers.layer(Stack::new(Policy::default()));
    assert_eq!(allocated(&layers, || large(Method::PUT, None)), [0; 5]);
    assert_eq!(allocated(&layers, || large(Method::POST, Some("order-7"))), [0; 5]);
    let made = allocated(&layers, || large(Method::POST, None));
    assert!(made.iter().all(|allocations| *allocations <= 2), "{made:?}");
}
