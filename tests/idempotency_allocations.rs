//! What a key costs, counted on one thread that polls by itself.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll, Waker};

use abate::IdempotencyKeyLayer;
use allocation_counter::measure;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Full;
use tower::{Layer, Service};

use super::{post, request};

/// Answers at once, without an allocation.
#[derive(Debug, Clone)]
struct Bare;

impl Service<Request<Full<Bytes>>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
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

/// The allocations of each of some calls.
fn allocated(layer: &IdempotencyKeyLayer, make: fn() -> Request<Full<Bytes>>) -> Vec<u64> {
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
    // The first finds the system's generator.
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
