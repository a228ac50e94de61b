//! Over and under layers of tower-http, which know HTTP.

use abate_tests::play::Beat;
use abate_tests::rig::{AnyBody, Kind, Rig, get};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::header::ACCEPT_ENCODING;
use http::{HeaderName, HeaderValue, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tower::{BoxError, Layer, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;
use tower_http::follow_redirect::FollowRedirectLayer;
use tower_http::set_header::SetRequestHeaderLayer;
use tower_http::trace::TraceLayer;

use crate::{Strict, answering, attempts, client, passes, policy};

const MARK: HeaderName = HeaderName::from_static("x-mark");

/// `hello`, as `gzip -n` has it.
const GZIPPED: [u8; 25] =
    [31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0, 0];

pub(crate) async fn over_trace(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), TraceLayer::new_for_http().layer(below));
    passes(&rig, rig.client.clone(), &script).await;
}

pub(crate) async fn under_trace(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), below);
    let above = ServiceBuilder::new().map_response(boxed).layer(TraceLayer::new_for_http());
    passes(&rig, above.service(rig.client.clone()), &script).await;
}

pub(crate) async fn over_set_header(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), mark().layer(below));
    passes(&rig, rig.client.clone(), &script).await;
    is_marked_once(&script);
}

pub(crate) async fn under_set_header(kind: Kind) {
    let (below, script) = client(kind);
    let rig = Rig::new(kind, &policy(), below);
    passes(&rig, mark().layer(rig.client.clone()), &script).await;
    is_marked_once(&script);
}

fn mark() -> SetRequestHeaderLayer<HeaderValue> {
    SetRequestHeaderLayer::appending(MARK, HeaderValue::from_static("once"))
}

/// On each attempt, however many there were.
fn is_marked_once(script: &Script) {
    for arrived in script.arrived() {
        assert_eq!(arrived.headers.get_all(MARK).iter().count(), 1);
    }
}

pub(crate) async fn over_follow_redirect(kind: Kind) {
    // Each attempt is sent on from `/moved`.
    let attempts = attempts(kind);
    let script = Script::by(move |n| match n % 2 {
        0 => moved(),
        _ if (n / 2 + 1) % attempts == 0 => whole(),
        _ => Answer::status(503),
    });
    let below = FollowRedirectLayer::new().layer(Strict::new(script.clone()));
    let rig = Rig::new(kind, &policy(), below);
    let above = ServiceBuilder::new().map_request(to_moved).service(rig.client.clone());
    passes(&rig, above, &script).await;
    assert_eq!(script.count(), 3 * 2 * attempts);
}

pub(crate) async fn under_follow_redirect(kind: Kind) {
    // The call is sent on; what then follows has attempts of its own.
    let attempts = attempts(kind);
    let script = Script::by(move |n| match n % (attempts + 1) {
        0 => moved(),
        n if n == attempts => whole(),
        _ => Answer::status(503),
    });
    let rig = Rig::new(kind, &policy(), Strict::new(script.clone()));
    let above = ServiceBuilder::new().map_request(to_moved).layer(FollowRedirectLayer::new());
    passes(&rig, above.service(rig.client.clone()), &script).await;
    assert_eq!(script.count(), 3 * (1 + attempts));
}

fn moved() -> Answer {
    Answer::status(302).header("location", "/")
}

fn whole() -> Answer {
    let body = [Beat::data("hel"), Beat::data("lo"), Beat::trailer("x-sum", "5")];
    Answer::status(200).body(body)
}

/// Without a body, which tower-http would not send on.
fn to_moved(_: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let mut request = get();
    *request.uri_mut() = Uri::from_static("http://a.test/moved");
    request
}

pub(crate) async fn over_decompression(kind: Kind) {
    let (below, script) = gzipping(kind);
    let rig = Rig::new(kind, &policy(), DecompressionLayer::new().layer(below));
    passes(&rig, rig.client.clone(), &script).await;
    asks_for_gzip(&script);
}

pub(crate) async fn under_decompression(kind: Kind) {
    let (below, script) = gzipping(kind);
    let rig = Rig::new(kind, &policy(), below);
    let above = ServiceBuilder::new().map_response(boxed).layer(DecompressionLayer::new());
    passes(&rig, above.service(rig.client.clone()), &script).await;
    asks_for_gzip(&script);
}

fn gzipping(kind: Kind) -> (Strict<Script>, Script) {
    answering(kind, |answer| {
        let [head, tail] = [&GZIPPED[..10], &GZIPPED[10..]].map(Bytes::from_static);
        let body = [Beat::Data(head), Beat::Data(tail), Beat::trailer("x-sum", "5")];
        answer.header("content-encoding", "gzip").body(body)
    })
}

fn asks_for_gzip(script: &Script) {
    for arrived in script.arrived() {
        assert_eq!(arrived.headers.get(ACCEPT_ENCODING).unwrap(), "gzip");
    }
}

fn boxed<B>(response: Response<B>) -> Response<AnyBody>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
{
    response.map(|body| body.map_err(Into::into).boxed())
}
