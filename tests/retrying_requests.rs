//! What a repeat carries.

use abate::Attempt;
use abate_tests::script::{Answer, Arrived, Script};
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderValue, Method, Uri, Version};
use tower::{Layer, ServiceExt};
use tower_http::set_header::SetRequestHeaderLayer;

use super::{Tested, get, request, retries};

#[derive(Debug, Clone, PartialEq)]
struct Tenant(&'static str);

fn values<'a>(arrived: &'a Arrived, name: &str) -> Vec<&'a [u8]> {
    arrived.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_the_request_once_more() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let mut request = request(Method::DELETE);
    *request.uri_mut() = Uri::from_static("https://user@a.test:8443/x%20y?q=1&r=%2F");
    *request.version_mut() = Version::HTTP_2;
    let headers = request.headers_mut();
    headers.append(ACCEPT, HeaderValue::from_static("text/html"));
    headers.append(ACCEPT, HeaderValue::from_static("*/*;q=0.1"));
    headers.append("x-bytes", HeaderValue::from_bytes(b"\xe4\t")?);
    let mut secret = HeaderValue::from_static("Bearer s3cret");
    secret.set_sensitive(true);
    headers.append(AUTHORIZATION, secret);
    let sent = request.headers().clone();
    retries(3)?.layer(script.clone()).oneshot(request).await?;

    assert_eq!(script.count(), 3);
    for arrived in script.arrived() {
        assert_eq!(arrived.method, Method::DELETE);
        assert_eq!(arrived.uri, "https://user@a.test:8443/x%20y?q=1&r=%2F");
        assert_eq!(arrived.version, Version::HTTP_2);
        assert_eq!(arrived.headers, sent);
        assert_eq!(values(&arrived, "accept"), [&b"text/html"[..], b"*/*;q=0.1"]);
        assert!(arrived.headers[AUTHORIZATION].is_sensitive());
    }
    Ok(())
}

// ID-04
#[tokio::test(start_paused = true)]
async fn what_a_layer_below_appends_does_not_pile_up() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let token = SetRequestHeaderLayer::appending(AUTHORIZATION, HeaderValue::from_static("Basic"));
    let mut request = get();
    request.headers_mut().insert("x-trace", HeaderValue::from_static("7"));
    retries(3)?.layer(token.layer(script.clone())).oneshot(request).await?;
    assert_eq!(script.count(), 3);
    for arrived in script.arrived() {
        assert_eq!(values(&arrived, "authorization"), [b"Basic"]);
        assert_eq!(values(&arrived, "x-trace"), [b"7"]);
        assert_eq!(arrived.headers.len(), 2, "the layer adds no header of its own");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_marked_and_the_context_tells_the_number_of_every_attempt() -> Tested {
    let script = Script::of([Answer::status(503)]);
    retries(3)?.layer(script.clone()).oneshot(get()).await?;
    let number = |attempt: Option<Attempt>| attempt.map(Attempt::number);
    let arrived = script.arrived();
    let marks = arrived.iter().map(|it| number(it.extensions.get().copied()));
    assert_eq!(marks.collect::<Vec<_>>(), [None, Some(2), Some(3)]);
    let told = arrived.iter().map(|it| number(it.current));
    assert_eq!(told.collect::<Vec<_>>(), [Some(1), Some(2), Some(3)]);
    assert_eq!(Attempt::current(), None, "nothing is left behind");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_callers_extensions_arrive_with_every_attempt() -> Tested {
    let script = Script::of([Answer::status(503)]);
    let mut request = get();
    request.extensions_mut().insert(Tenant("blue"));
    retries(3)?.layer(script.clone()).oneshot(request).await?;
    assert_eq!(script.count(), 3);
    for arrived in script.arrived() {
        assert_eq!(arrived.extensions.get(), Some(&Tenant("blue")));
    }
    Ok(())
}
