//! Publishes what a server says about coming back, for whoever is above.
//!
//! **Protects from** clients that knock early: a response that says when to come back gets a
//! [`Pushback`](crate::Pushback) in its extensions, so that other layers, and other people's
//! retries, need not parse headers.
//!
//! **Stands** below the breaker and above the concurrency limit. [`RetryLayer`](crate::RetryLayer)
//! does not need it: it reads the headers by itself.
//!
//! **tower** has nothing like it.
//!
//! | what | how it is read | why |
//! |---|---|---|
//! | seconds | also with a fraction, rounded up | limiters in the wild send them |
//! | `retry-after-ms` | the same, in milliseconds | |
//! | a date | against the response's own `Date`, unless it comes out of a cache | clocks are skewed |
//! | quota headers, gRPC's pushback, `x-should-retry` | if the policy's [`HintSources`](crate::HintSources) say so | they mean different things at different places |
//! | malformed, negative | ignored | a wrong hint is no hint |
//! | on a success (2xx) | not looked at, but for gRPC's, if declared | it asks for nothing; a gRPC failure is a 200 |
//!
//! # Examples
//!
//! ```
//! use abate::RetryAfterLayer;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> impl tower::Service<http::Request<http_body_util::Empty<bytes::Bytes>>> {
//! ServiceBuilder::new()
//!     .layer(RetryAfterLayer::new())
//!     .service(Client::builder(TokioExecutor::new()).build_http())
//! # }
//! # drop(build());
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each header that cannot be read.

pub mod future;
mod layer;
mod service;

pub use self::layer::RetryAfterLayer;
pub use self::service::RetryAfter;
