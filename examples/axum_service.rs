//! A service whose one dependency stops answering for a while: what do the callers of the service see?
//!
//! ```text
//! cargo run -p abate-examples --example axum_service
//! ```
//!
//! All of it runs on loopback, and ends by itself after ten seconds.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use abate::{Policy, ReplayBody, Stack, StackService};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};
use tower::{Layer, ServiceExt};

/// Calls per second.
const RATE: u32 = 40;
const SECONDS: u32 = 10;
/// The dependency answers nothing in these seconds.
const HANGS: std::ops::Range<u32> = 1..5;

/// What each handler has at hand: the way to the dependency, with all that guards it.
#[derive(Clone)]
struct Shop {
    stock: StackService<Client<HttpConnector, ReplayBody<Body>>>,
    stock_uri: Uri,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (hangs, watched) = watch::channel(false);
    let stock = serve(Router::new().route("/", get(stock)).with_state(watched)).await?;

    let policy = Policy::builder()
        .with_total_timeout(Duration::from_secs(1))
        .with_attempt_timeout(Duration::from_millis(300))
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let shop = Shop {
        stock: Stack::new(policy).layer(client),
        stock_uri: format!("http://{stock}/").parse()?,
    };
    let service = serve(Router::new().route("/", get(item)).with_state(shop)).await?;

    call_for_a_while(format!("http://{service}/").parse()?, &hangs).await
}

/// A dependency's answer is passed on; an error becomes 502, 503 or 504 by itself.
async fn item(State(shop): State<Shop>) -> Result<Response, abate::Error> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = shop.stock_uri;
    let answer = shop.stock.oneshot(request).await?;
    Ok(answer.map(Body::new))
}

/// The dependency.
async fn stock(State(mut hangs): State<watch::Receiver<bool>>) -> &'static str {
    match hangs.wait_for(|hangs| !hangs).await {
        Ok(_) => "seven left\n",
        Err(_) => "closing down\n",
    }
}

async fn serve(app: Router) -> io::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, app).into_future());
    Ok(address)
}

/// Calls the service at an even rate, and prints what came of the calls of each second.
async fn call_for_a_while(service: Uri, hangs: &watch::Sender<bool>) -> anyhow::Result<()> {
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build_http();
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.tick().await; // the first comes at once
    let mut lines = JoinSet::new();
    println!("second  dependency  what callers of the service saw, and the longest wait");
    for second in 0..SECONDS {
        hangs.send_replace(HANGS.contains(&second));
        let mut calls = JoinSet::new();
        for _ in 0..RATE {
            calls.spawn(call(client.clone(), service.clone()));
            ticks.tick().await;
        }
        let dependency = if HANGS.contains(&second) { "hangs" } else { "healthy" };
        // Printed when the last of them is answered, while those of the next second go out.
        lines.spawn(async move {
            let seen = summary(calls.join_all().await);
            println!("{second:>6}  {dependency:10}  {seen}");
        });
    }
    lines.join_all().await;
    Ok(())
}

async fn call(client: Client<HttpConnector, Body>, service: Uri) -> (String, Duration) {
    let start = Instant::now();
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = service;
    let seen = match client.request(request).await {
        Ok(response) => match response.headers().get(RETRY_AFTER).map(HeaderValue::to_str) {
            Some(Ok(after)) => format!("{} (Retry-After: {after})", response.status().as_u16()),
            _ => response.status().as_u16().to_string(),
        },
        Err(error) => error.to_string(),
    };
    (seen, start.elapsed())
}

/// Such as `32 × 503 (Retry-After: 2) in 1 ms, 8 × 504 in 1001 ms`.
fn summary(calls: Vec<(String, Duration)>) -> String {
    let mut kinds = BTreeMap::<String, (u32, Duration)>::new();
    for (seen, took) in calls {
        let (count, longest) = kinds.entry(seen).or_default();
        *count += 1;
        *longest = took.max(*longest);
    }
    let kind = |(seen, (count, longest)): (String, (u32, Duration))| {
        format!("{count} × {seen} in {} ms", longest.as_millis())
    };
    kinds.into_iter().map(kind).collect::<Vec<_>>().join(", ")
}
