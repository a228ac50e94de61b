//! Through a real nginx: a proxy's own 502, 504, 429 and 503, its slow upstream, and its keep-alive.
//!
//! `scripts/test` brings nginx and names it in `ABATE_NGINX`. Without it these tests stand down, which
//! `scripts/test` says in a line of its own; under `CI=true` that is a failure.

#[path = "real_nginx_server.rs"]
mod server;

use std::time::{Duration, Instant};

use abate::{BreakerState, ErrorKind, Policy, Report, Stack, StopReason};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, ServiceExt};

use server::{Nginx, Upstream};

type Test = anyhow::Result<()>;

fn policy() -> abate::PolicyBuilder {
    Policy::builder().with_base(Duration::from_millis(20)).with_cap(Duration::from_millis(100))
}

fn request(method: Method, uri: String) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.method_mut() = method;
    if let Ok(uri) = uri.parse() {
        *request.uri_mut() = uri;
    }
    request
}

/// A call through the stack of `policy`, with its body read.
async fn call(
    stack: &Stack,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, abate::Error> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (head, body) = stack.layer(client).oneshot(request).await?.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

fn attempts<B>(response: &Response<B>) -> u32 {
    response.extensions().get().map_or(1, Report::attempts)
}

fn stop<B>(response: &Response<B>) -> Option<StopReason> {
    response.extensions().get().and_then(Report::stop_reason)
}

#[tokio::test]
async fn a_proxy_without_an_upstream_is_retried_and_its_502_handed_on() -> Test {
    let Some(nginx) = Nginx::start(Upstream::Refuses).await? else { return Ok(()) };
    let stack = Stack::new(policy().build()?);
    let response = call(&stack, request(Method::GET, nginx.uri("/proxied"))).await?;
    assert_eq!((response.status().as_u16(), attempts(&response)), (502, 3));
    assert_eq!(stop(&response), Some(StopReason::Attempts));
    assert!(response.body().starts_with(b"<html>"), "nginx's own page reaches the caller");

    let response = call(&stack, request(Method::POST, nginx.uri("/proxied"))).await?;
    assert_eq!((response.status().as_u16(), attempts(&response)), (502, 1));
    assert_eq!(stop(&response), Some(StopReason::NotIdempotent), "the upstream may have acted");
    Ok(())
}

#[tokio::test]
async fn a_slow_upstream_is_a_504_of_the_proxy_or_a_timeout_of_ours_whichever_comes_first() -> Test
{
    let Some(nginx) = Nginx::start(Upstream::Hangs).await? else { return Ok(()) };
    let once = policy().with_attempts(1).build()?;
    let response = call(&Stack::new(once), request(Method::GET, nginx.uri("/proxied"))).await?;
    assert_eq!(response.status(), 504, "proxy_read_timeout is one second");

    let hasty = policy().with_attempts(2).with_attempt_timeout(Duration::from_millis(100));
    let started = Instant::now();
    let stack = Stack::new(hasty.build()?);
    let result = call(&stack, request(Method::GET, nginx.uri("/proxied"))).await;
    let error = result.err().map(|error| (error.kind(), error.attempts()));
    assert_eq!(error, Some((ErrorKind::AttemptTimeout, 2)));
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_rate_limit_of_the_proxy_is_waited_for_and_opens_no_breaker() -> Test {
    let Some(nginx) = Nginx::start(Upstream::Answers).await? else { return Ok(()) };
    // Five a second without a burst: of a volley most are told 429 at first.
    let patient = policy().with_attempts(12).with_base(Duration::from_millis(200));
    let patient = patient.with_cap(Duration::from_secs(2)).with_budget_floor(1_000.0).build()?;
    let stack = Stack::new(patient);
    let calls = (0..4).map(|_| call(&stack, request(Method::POST, nginx.uri("/limited"))));
    let responses = futures_util::future::try_join_all(calls).await?;
    assert!(responses.iter().all(|response| response.status() == 200), "a 429 repeats a POST too");
    assert!(responses.iter().map(attempts).sum::<u32>() > 4, "some had to come again");
    assert_eq!(stack.breaker().state(), BreakerState::Closed);
    Ok(())
}

#[tokio::test]
async fn a_proxy_that_says_503_for_its_limit_is_retried_where_that_is_safe() -> Test {
    let Some(nginx) = Nginx::start(Upstream::Answers).await? else { return Ok(()) };
    let stack = Stack::new(policy().with_attempts(1).build()?);
    let calls = (0..4).map(|_| call(&stack, request(Method::GET, nginx.uri("/limited-503"))));
    let first = futures_util::future::try_join_all(calls).await?;
    assert!(first.iter().any(|response| response.status() == 503), "the limit is one a second");

    let patient = policy().with_base(Duration::from_secs(1)).with_cap(Duration::from_secs(2));
    let patient = patient.with_attempts(6).with_budget_floor(1_000.0).build()?;
    let stack = Stack::new(patient);
    let response = call(&stack, request(Method::GET, nginx.uri("/limited-503"))).await?;
    assert_eq!(response.status(), 200);
    let post = call(&stack, request(Method::POST, nginx.uri("/limited-503"))).await?;
    assert!(post.status() == 200 || stop(&post) == Some(StopReason::NotIdempotent));
    Ok(())
}

// CN-01
#[tokio::test]
async fn connections_that_the_proxy_closes_when_idle_cost_no_call() -> Test {
    let Some(nginx) = Nginx::start(Upstream::Answers).await? else { return Ok(()) };
    // nginx closes a connection after two requests or 50 ms: the race is run again and again.
    let stack = Stack::new(policy().with_budget_floor(1_000.0).build()?);
    let client = stack.layer(Client::builder(TokioExecutor::new()).build_http());
    for nth in 0..60_u64 {
        let response = client.clone().oneshot(request(Method::GET, nginx.uri("/closing"))).await?;
        assert_eq!(response.status(), 200, "call {nth}");
        assert_eq!(response.into_body().collect().await?.to_bytes(), "here it is");
        // Around the moment at which nginx closes.
        tokio::time::sleep(Duration::from_millis(45 + nth % 10)).await;
    }
    Ok(())
}
