//! Bounds a whole call, its waits and all its attempts included.
//!
//! **Protects from** callers held longer than their answer is of use to anyone.
//!
//! **Stands** above the retry, which then starts no attempt that cannot end in time; the layers
//! below see the deadline and clip their own waits to it.
//!
//! **Differs from [tower's `Timeout`](https://docs.rs/tower/latest/tower/timeout/)** in that what is
//! below knows of it, that a request can bring its own [`Deadline`](crate::Deadline) in its
//! extensions (the earlier one counts), and that a call which is answered at once registers no timer.
//!
//! | setting | default | why |
//! |---|---|---|
//! | timeout | explicit here; 30 s in [`Stack`](crate::Stack) | about as long as a person, or the proxy in front, waits |
//!
//! The deadline covers the wait for the response *head*; a body may take longer, unless
//! `covering_body` says otherwise.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use abate::{DeadlineLayer, Policy, RetryLayer};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> impl tower::Service<http::Request<http_body_util::Empty<bytes::Bytes>>> {
//! ServiceBuilder::new()
//!     .layer(DeadlineLayer::new(Duration::from_secs(2)))
//!     .layer(RetryLayer::new(Policy::default()))
//!     .service(Client::builder(TokioExecutor::new()).build_http())
//! # }
//! # drop(build());
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each call that is ended.

pub mod future;
mod layer;
mod service;

pub use self::layer::DeadlineLayer;
pub use self::service::Deadlined;
