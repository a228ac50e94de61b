//! Redirects below the retry, and above it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use abate::{BoxError, Error, ReplayBody, RetryLayer, StopReason};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::time::timeout;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_http::follow_redirect::FollowRedirectLayer;
use tower_http::follow_redirect::policy::{PolicyExt, Standard, clone_body_fn};

use super::Protocol::Http1;
use super::real_bodies_server::{BUSY, Got, OK, Server};
use super::{PATIENCE, Test, client, request, steady, streamed, told, whole};

/// Redirects `/` to `to`, and gives `/end` these answers, then OK.
async fn server(
    status: u16,
    to: String,
    answers: &'static [&'static str],
) -> anyhow::Result<Server> {
    let redirect =
        format!("HTTP/1.1 {status} There\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    let ends = Arc::new(AtomicUsize::new(0));
    Ok(Server::start(move |mut peer| {
        let (redirect, ends) = (redirect.clone(), Arc::clone(&ends));
        async move {
            loop {
                let got = peer.request().await?;
                let answer = if got.line().ends_with(" /") {
                    redirect.as_str()
                } else {
                    // Relaxed: one call at a time.
                    let nth = ends.fetch_add(1, Ordering::Relaxed);
                    answers.get(nth).copied().unwrap_or(OK)
                };
                peer.send(answer).await?;
            }
        }
    })
    .await?)
}

type Answer = Response<Incoming>;

/// A retry over redirects.
async fn outside<B>(request: Request<B>) -> anyhow::Result<Answer>
where
    B: Body<Data = Bytes> + Default + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    let again = clone_body_fn(ReplayBody::<B>::try_clone);
    let redirects = Standard::default().and::<_, _, BoxError>(again);
    let service = ServiceBuilder::new()
        .layer(RetryLayer::new(steady().build()?))
        .layer(FollowRedirectLayer::with_policy(redirects))
        .service(client(Http1));
    Ok(timeout(PATIENCE, service.oneshot(request)).await??)
}

/// Redirects over a retry.
async fn inside(request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
    let again = clone_body_fn(|body: &Full<Bytes>| Some(body.clone()));
    let redirects = Standard::default().and::<_, _, Error>(again);
    let retry = RetryLayer::new(steady().build()?).layer(client(Http1));
    let service = FollowRedirectLayer::with_policy(redirects).layer(retry);
    Ok(timeout(PATIENCE, service.oneshot(request)).await??)
}

fn post<B>(server: &Server, body: B) -> Request<B> {
    request(Method::POST, server.address, body)
}

fn full() -> Full<Bytes> {
    Full::from(whole())
}

fn marked<B>(mut request: Request<B>) -> Request<B> {
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("8e03978e"));
    request
}

fn lines(got: &[Got]) -> Vec<&str> {
    got.iter().map(Got::line).collect()
}

// AM-03
#[tokio::test]
async fn a_retry_over_redirects_begins_again_at_the_first_address_with_the_whole_body() -> Test {
    for status in [307, 308] {
        let server = server(status, "/end".into(), &[BUSY]).await?;
        let response = outside(marked(post(&server, full()))).await?;
        assert_eq!(told(&response), (vec![503, 200], None), "a redirect is no attempt");
        let got = server.all();
        assert_eq!(lines(&got), ["POST /", "POST /end", "POST /", "POST /end"]);
        for got in got {
            assert!(got.body == whole(), "{}", got.head);
            assert_eq!(got.header("idempotency-key"), Some("8e03978e"));
        }
    }
    Ok(())
}

// AM-03
#[tokio::test]
async fn redirects_over_a_retry_follow_what_it_comes_to_and_each_hop_is_a_call() -> Test {
    let server = server(307, "/end".into(), &[BUSY, BUSY]).await?;
    let response = inside(marked(post(&server, full()))).await?;
    assert_eq!(told(&response), (vec![503, 503, 200], None));
    let got = server.all();
    assert_eq!(lines(&got), ["POST /", "POST /end", "POST /end", "POST /end"]);
    assert!(got.iter().all(|got| got.body == whole()));
    Ok(())
}

// AM-03
#[tokio::test]
async fn a_stream_below_the_retry_is_not_followed_rather_than_sent_without_its_body() -> Test {
    let server = server(307, "/end".into(), &[]).await?;
    let response = outside(post(&server, streamed().boxed_unsync())).await?;
    assert_eq!((response.status().as_u16(), told(&response)), (307, (vec![], None)));
    let got = server.all();
    assert_eq!(lines(&got), ["POST /"]);
    assert!(got[0].body == whole());
    Ok(())
}

// AM-03
#[tokio::test]
async fn after_a_302_the_first_method_decides_above_and_the_new_one_below() -> Test {
    let outer = server(302, "/end".into(), &[BUSY]).await?;
    let response = outside(post(&outer, full())).await?;
    assert_eq!(told(&response), (vec![503], Some(StopReason::NotIdempotent)));
    let got = outer.all();
    assert_eq!(lines(&got), ["POST /", "GET /end"]);
    assert_eq!(got[1].body, b"");

    let inner = server(302, "/end".into(), &[BUSY]).await?;
    let response = inside(post(&inner, full())).await?;
    assert_eq!(told(&response), (vec![503, 200], None));
    assert_eq!(lines(&inner.all()), ["POST /", "GET /end", "GET /end"]);
    Ok(())
}

// AM-03
#[tokio::test]
async fn a_hop_to_another_origin_gets_no_credentials_on_any_attempt() -> Test {
    let other = server(307, "/end".into(), &[BUSY]).await?;
    let first = server(307, format!("http://{}/end", other.address), &[]).await?;
    let mut post = marked(post(&first, full()));
    post.headers_mut().insert("authorization", HeaderValue::from_static("Bearer hunter2"));
    let response = outside(post).await?;
    assert_eq!(told(&response), (vec![503, 200], None));
    let (here, there) = (first.all(), other.all());
    assert_eq!((lines(&here), lines(&there)), (vec!["POST /"; 2], vec!["POST /end"; 2]));
    assert!(here.iter().all(|got| got.header("authorization") == Some("Bearer hunter2")));
    assert!(there.iter().all(|got| got.header("authorization").is_none()));
    Ok(())
}
