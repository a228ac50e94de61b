//! Reads response bodies ahead, so that one that breaks off is a failed attempt and no half an
//! answer.
//!
//! **Protects from** connections that break after a good head. Retry and breaker judge by the head;
//! what breaks later reaches the reader, who can only fail. Read ahead, the body belongs to the
//! attempt: it is repeated if the request may be, on the same budget, and recorded by the breaker,
//! as one unit.
//!
//! **Stands** below the breaker, once per attempt, and best right above the client, where the
//! attempt timeout covers the body as well:
//!
//! ```text
//! deadline ─► retry ─► circuit breaker ─► … ─► attempt timeout ─► buffered response ─► client
//! ```
//!
//! A [`Stack`](crate::Stack) takes it as its client (see below). It has no switch for it, which would
//! change the type of every stack's responses to say what one more line says.
//!
//! **Differs from [`BodyExt::collect`](https://docs.rs/http-body-util/latest/http_body_util/trait.BodyExt.html#method.collect)**
//! in that memory and time are bounded, that the trailers are kept where they were, and that a body
//! is nobody's error for being long.
//!
//! | setting | default | why |
//! |---|---|---|
//! | cap | 1 MiB ([`DEFAULT_CAP`](BufferedResponseLayer::DEFAULT_CAP)) | holds what is read into memory anyhow: a page of JSON, a token; a hundred at once are 100 MiB |
//! | read timeout | 10 s ([`DEFAULT_READ_TIMEOUT`](BufferedResponseLayer::DEFAULT_READ_TIMEOUT)) | as long as [`Stack`](crate::Stack) waits for a head; the whole cap at 100 KiB/s |
//!
//! # What is read, and what is not
//!
//! * A body **longer than the cap** is handed on as a stream, what was read of it first: nothing is
//!   lost and nothing comes twice. If its size says so at once, nothing is read. What then breaks
//!   off is an error to its reader, and a failure to the breaker, as without this layer.
//! * **Streams by their media type** (`text/event-stream`, `application/grpc`,
//!   `multipart/x-mixed-replace`) are handed on at once. Any other body is read, pauses and all: a
//!   watch that answers with endless JSON ends by the read timeout. Call it without this layer.
//! * **Failures by their head** (what [`Policy::default`](crate::Policy) retries: 408, 425, 429, 500,
//!   502, 503, 504) are handed on at once. To read them would win nothing, and could lose their
//!   `Retry-After`.
//! * Answers to **HEAD, 204, 304**, and bodies that are at their end, cost nothing.
//!
//! A body that ends before the size that it stated has broken off, whatever its client says of it:
//! hyper takes a stream that an HTTP/2 server resets without an error for a clean end.
//!
//! When the **read timeout** is up, counted from the head, the attempt has failed with
//! [`ErrorKind::AttemptTimeout`](crate::ErrorKind::AttemptTimeout), as if its head had not come. The
//! [deadline](crate::deadline) of the call covers the body too, and ends the call.
//!
//! Where a [concurrency limit](crate::concurrency_limit) stands above, [`Hold::Head`](crate::Hold)
//! gives the permit back when the body has been read into memory, and not when its reader is
//! through with it.
//!
//! A body in one frame is handed on as it is. One in several is joined, which is one allocation if
//! its size is known, and else those of a buffer that doubles (so at most twice the cap).
//!
//! # Examples
//!
//! Below a stack:
//!
//! ```
//! use abate::{BufferedResponseLayer, Policy, Stack};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() {
//! let service = ServiceBuilder::new()
//!     .layer(Stack::new(Policy::default()))
//!     .layer(BufferedResponseLayer::default())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # fn check<S: tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>>>(_: S) {}
//! # check(service);
//! # }
//! # build();
//! ```
//!
//! By hand:
//!
//! ```
//! use std::time::Duration;
//!
//! use abate::test::{Answer, Dependency};
//! use abate::{
//!     AttemptTimeoutLayer, BufferedResponseLayer, CircuitBreakerLayer, Policy, RetryLayer,
//! };
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::{BodyExt, Full};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let stock = Dependency::answering([
//!     Answer::status(200).with_body("seven l").with_broken_body(),
//!     Answer::status(200).with_body("seven left"),
//! ]);
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::new(Policy::default()))
//!     .layer(CircuitBreakerLayer::new(Policy::default()))
//!     .layer(BufferedResponseLayer::new(64 * 1024).with_read_timeout(Duration::from_secs(2)))
//!     .layer(AttemptTimeoutLayer::new(Duration::from_secs(2)))
//!     .service(stock.clone());
//! let response = service.oneshot(Request::new(Full::<Bytes>::default())).await?;
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "seven left");
//! assert_eq!(stock.attempts(), [1, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each attempt whose time for reading was up.

mod body;
pub mod future;
mod layer;
mod reading;
mod service;
mod terms;

pub use self::body::BufferedBody;
pub use self::layer::BufferedResponseLayer;
pub use self::service::BufferedResponse;

#[cfg(test)]
mod tests;
