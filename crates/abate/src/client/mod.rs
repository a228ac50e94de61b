//! A client that is ready to use: hyper's, with HTTPS, HTTP/2, redirects and decompression, and all
//! layers around it.
//!
//! ```text
//! decompression ─► deadline ─► retry ─► breaker ─► retry-after ─► limit ─► attempt timeout ─► redirects ─► hyper
//!                  └──────────────────────────────── Stack ─────────────────────────────┘
//! ```
//!
//! **Redirects stand below the retry**: a repeat begins at the request's own URI again, with its whole
//! body, and a hop is no attempt. Retry, breaker and timeout see one exchange, however many hops
//! it took. So the request's own method decides whether it may be repeated (a POST that a 303 made a
//! GET is still none), and the breaker of its own authority learns what became of it. A hop to
//! another origin goes without `Authorization`, `Cookie`, `Proxy-Authorization` and `Host`, and
//! so do all after it.
//!
//! **Decompression stands above everything**: what is drained, held and timed are the bytes of the
//! wire, a body that is discarded is never decompressed, and data that cannot be decompressed is
//! not held against a connection. `Accept-Encoding: gzip, deflate` is added unless there is one.
//!
//! **Below** are hyper's pool and its own resends of what was never sent (a connection that died
//! while it was idle); HTTP/2 where the server offers it in the TLS handshake.
//!
//! | setting | default | why |
//! |---|---|---|
//! | scope of the breaker | one for each authority | a general client; one budget and one limit for all |
//! | redirects | [`REDIRECTS`] in an attempt | as reqwest |
//! | connect timeout | [`CONNECT_TIMEOUT`], or half the attempt timeout | a failure that says that nothing was sent, and so may be repeated |
//! | root certificates | the platform's | [`with_root_certificates`](ClientBuilder::with_root_certificates) adds others |
//! | cryptography | the process's provider of rustls, or else aws-lc-rs | [why](https://github.com/abate-rs/abate/blob/main/docs/decisions/0005-dependencies.md) |
//! | idle connections | hyper's, 90 s | – |
//!
//! # Errors
//!
//! Those of [`Stack`](crate::Stack); hyper-util's error is the source. In a body, also what cannot be
//! decompressed.
//!
//! # Examples
//!
//! ```no_run
//! use abate::Policy;
//! use http::Request;
//! use http_body_util::BodyExt;
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let client = abate::client(Policy::default())?;
//! let request = Request::put("https://stock.example/items/7").body(r#"{"left":3}"#)?;
//! let response = client.request(request).await?;
//! println!("{}: {:?}", response.status(), response.into_body().collect().await?.to_bytes());
//! println!("{:?}", client.breaker().key("stock.example").map(|breaker| breaker.state()));
//! # Ok(())
//! # }
//! ```
//!
//! **Telemetry:** that of the stack's layers.

mod body;
mod builder;
mod decoded;
pub mod future;
mod redirect;
mod service;
mod wired;

pub use self::body::Body;
pub use self::builder::{BuildError, CONNECT_TIMEOUT, ClientBuilder, REDIRECTS, client};
pub use self::decoded::Decoded;
pub use self::service::Client;
