//! reqwest with all layers in between: its own requests go in, and its own responses come out.
//!
//! ```text
//! cargo run -p abate-examples --example reqwest_client
//! ```
//!
//! All of it runs on loopback, and ends by itself after some three seconds.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::time::Duration;

use abate::{Policy, Report, ReqwestClient, ReqwestService, Scope, Stack};
use abate_examples::stock::Stock;
use tokio::time::{Instant, interval};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stock = Stock::start().await?;

    // reqwest's own repeats are off: the stack has a budget and a breaker for them.
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
    let stack = Stack::new(Policy::default()).with_scope(Scope::PerAuthority);
    let client = ReqwestClient::new(ReqwestService::new(http.clone()), &stack);

    // What succeeds earns what is retried: a fifth of it.
    for _ in 0..25 {
        client.execute(http.get(stock.url("/items/0")).build()?).await?;
    }
    println!(
        "The first answer about each item is a 503; a redirect is no attempt; one is asked to wait:"
    );
    for path in ["/items/1", "/items/1", "/old/2", "/busy"] {
        let start = Instant::now();
        // A timeout of reqwest's holds for each attempt.
        let request = http.get(stock.url(path)).timeout(Duration::from_secs(2)).build()?;
        let response = client.execute(request).await?;
        let attempts = response.extensions().get().map_or(1, Report::attempts);
        let (status, from) = (response.status(), response.url().path().to_owned());
        let (body, took) = (response.text().await?, start.elapsed().as_millis());
        println!("  {path:9} {status} from {from}, {body:?}, attempts: {attempts}, {took} ms");
    }

    println!("\nThe dependency is down, and called until nobody is sent there any more:");
    stock.set_down(true);
    let (mut calls, start) = (0, Instant::now());
    let mut ticks = interval(Duration::from_millis(20));
    let error = loop {
        ticks.tick().await;
        calls += 1;
        if let Err(error) = client.execute(http.get(stock.url("/items/4")).build()?).await {
            break error;
        }
    };
    let took = start.elapsed().as_millis();
    println!("  {calls} calls and {took} ms later: {error}");
    for authority in stack.breaker().keys() {
        let state = stack.breaker().key(&authority).map(|breaker| breaker.state());
        println!("  breaker of {authority}: {state:?}, others are called as before");
    }
    Ok(())
}
