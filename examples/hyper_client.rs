//! The client that is ready to use, and a dependency that fails now and then.
//!
//! ```text
//! cargo run -p abate-examples --example hyper_client
//! ```
//!
//! All of it runs on loopback, and ends by itself after some seven seconds.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::collections::BTreeMap;
use std::time::Duration;

use abate::{Client, Policy, Report};
use abate_examples::stock::Stock;
use http::Request;
use http_body_util::BodyExt;
use tokio::time::{Instant, interval};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stock = Stock::start().await?;
    // `abate::client(policy)` is all it takes; but here is no HTTPS, and perhaps no root certificate.
    let client = Client::builder(Policy::default()).without_platform_roots().build()?;

    // What succeeds earns what is retried: a fifth of it.
    for _ in 0..25 {
        client.request(Request::get(stock.url("/items/0")).body("")?).await?;
    }
    println!("The first answer about each item is a 503; a redirect is no attempt:");
    for path in ["/items/1", "/items/1", "/old/2"] {
        let request = Request::put(stock.url(path)).body(r#"{"left":7}"#)?;
        call(&client, path, request).await?;
    }
    println!("\n\"Come again in a second\" is obeyed:");
    call(&client, "/busy", Request::get(stock.url("/busy")).body("")?).await?;

    println!("\nThe dependency is down for 4 s of 20 calls a second, and then back:");
    let mut ticks = interval(Duration::from_millis(50));
    for (down, seconds) in [(true, 4), (false, 2)] {
        stock.set_down(down);
        let mut outcomes = BTreeMap::<String, u32>::new();
        for _ in 0..20 * seconds {
            ticks.tick().await;
            let request = Request::get(stock.url("/items/5")).body("")?;
            let outcome = match client.request(request).await {
                Ok(response) => response.status().to_string(),
                Err(error) => format!("{:?}", error.kind()),
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
        let state = client.breaker().state();
        println!("  {}: {outcomes:?}, breaker {state:?}", if down { "down" } else { "back" });
    }
    Ok(())
}

/// Calls, and tells how it went.
async fn call(client: &Client, path: &str, request: Request<&'static str>) -> anyhow::Result<()> {
    let start = Instant::now();
    let response = client.request(request).await?;
    let attempts = response.extensions().get().map_or(1, Report::attempts);
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let took = start.elapsed().as_millis();
    println!("  {path:9} {status}, {body:?}, attempts: {attempts}, {took} ms");
    Ok(())
}
