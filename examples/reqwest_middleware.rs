//! reqwest-middleware with our retries, in place of reqwest-retry's `RetryTransientMiddleware`.
//!
//! ```text
//! cargo run -p abate-examples --example reqwest_middleware
//! ```
//!
//! All of it runs on loopback, and ends by itself after some two seconds.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::time::Instant;

use abate::{Attempt, Idempotent, Policy, Report, RetryLayer};
use abate_examples::stock::Stock;
use async_trait::async_trait;
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stock = Stock::start().await?;
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
    // `Stack::new(policy)` instead would be all layers.
    let retry = RetryLayer::new(Policy::default());
    // What succeeds earns what is retried: a fifth of it.
    let quiet = ClientBuilder::new(http.clone()).with(retry.clone()).build();
    for _ in 0..25 {
        quiet.get(stock.url("/items/0")).send().await?;
    }
    let client = ClientBuilder::new(http).with(retry).with(Printed).build();

    for (title, request) in [
        ("A GET may be repeated", client.get(stock.url("/items/1"))),
        ("One that is asked to wait, too", client.get(stock.url("/busy"))),
        ("A POST may not", client.post(stock.url("/items/2")).body("3")),
        (
            "A POST of which its caller says that it may",
            client.post(stock.url("/items/3")).body("3").with_extension(Idempotent(true)),
        ),
    ] {
        println!("{title}:");
        let start = Instant::now();
        let response = request.send().await?;
        let report = response.extensions().get::<Report>().map(ToString::to_string);
        let took = start.elapsed().as_millis();
        println!("  {} in {took} ms; {}\n", response.status(), report.unwrap_or_default());
    }
    Ok(())
}

/// Stands below the retries, and so sees every attempt.
struct Printed;

#[async_trait]
impl Middleware for Printed {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let attempt = extensions.get::<Attempt>().map_or(1, |attempt| attempt.number());
        let asked = format!("{} {}", request.method(), request.url().path());
        let response = next.run(request, extensions).await?;
        println!("  attempt {attempt}: {asked} -> {}", response.status());
        Ok(response)
    }
}
