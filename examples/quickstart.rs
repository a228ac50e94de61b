//! The first thing to try: a client that survives a dependency's bad moment.
//!
//! ```text
//! cargo run -p abate-examples --example quickstart [URL]
//! ```

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Service, ServiceBuilder, ServiceExt};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url: Uri = match std::env::args().nth(1) {
        Some(url) => url.parse()?,
        None => abate_examples::flaky_origin().await?, // 503, 503, and then 200
    };

    let client = Client::builder(TokioExecutor::new()).build_http();
    let policy = abate::Policy::default();
    let mut service = ServiceBuilder::new().layer(abate::Stack::new(policy)).service(client);

    let request = Request::get(url).body(Empty::<Bytes>::new())?;
    let response = service.ready().await?.call(request).await?;

    let report = response.extensions().get::<abate::Report>();
    println!("{}, attempts: {}", response.status(), report.map_or(1, abate::Report::attempts));
    Ok(())
}
