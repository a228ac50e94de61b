//! Ends an attempt that takes too long, so that a hung dependency is a failure and not a wait.
//!
//! **Protects from** workers that sit on a dependency which accepts requests and does not answer.
//!
//! **Stands** lowest in the stack, directly above the client and below the breaker, which records
//! the timeout as a failure. It is clipped by the deadline of the call.
//!
//! **Differs from [tower's `Timeout`](https://docs.rs/tower/latest/tower/timeout/)** in that the
//! error has a type of its own ([`ErrorKind::AttemptTimeout`](crate::ErrorKind::AttemptTimeout)),
//! that it respects the call's [`Deadline`](crate::Deadline), and that an attempt which is answered
//! at once registers no timer.
//!
//! | setting | default | why |
//! |---|---|---|
//! | timeout | explicit here; 10 s in [`Stack`](crate::Stack) | a third of the total of 30 s, so that three attempts fit |
//!
//! The timeout covers the wait for the response *head*, from the first poll on, before which a
//! future does nothing; a body may take longer, unless `covering_body` says otherwise.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use abate::AttemptTimeoutLayer;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> impl tower::Service<http::Request<http_body_util::Empty<bytes::Bytes>>> {
//! ServiceBuilder::new()
//!     .layer(AttemptTimeoutLayer::new(Duration::from_secs(3)))
//!     .service(Client::builder(TokioExecutor::new()).build_http())
//! # }
//! # drop(build());
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each attempt that is ended.

pub mod future;
mod layer;
mod service;
mod terms;

pub use self::layer::AttemptTimeoutLayer;
pub use self::service::AttemptTimeout;
