//! Holds or refuses the other calls while a dependency wants to be left alone.
//!
//! **Protects from** knocking on: one call is told "429, come back in 30 s" and waits, and all the
//! others, which could know as well, go on calling. And from all of them coming back in one moment.
//!
//! **Stands** below the breaker and above the concurrency limit. It is not part of
//! [`Stack`](crate::Stack): put it between a retry and a client where a dependency means its hints
//! for all callers, as rate limits by account do.
//!
//! **tower** has nothing like it.
//!
//! | setting | default | why |
//! |---|---|---|
//! | what counts | 429 and 503 with a hint; gRPC's own, if declared | those say "not now"; other statuses say what is wrong |
//! | scope | each authority for itself | a wish is the wish of one server |
//! | calls meanwhile | refused, with the moment to come back | a caller that is held knows nothing; [`CooldownLayer::holding`] holds those that need not wait long |
//! | when it is over | spread over a quarter of the hint, at least 100 ms | so that they do not all arrive in one moment |
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use abate::{CooldownLayer, Policy, RetryLayer};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! let policy = Policy::default();
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::new(&policy))
//!     .layer(CooldownLayer::new(&policy).holding(Duration::from_secs(2)))
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # fn check<S: tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>>>(_: S) {}
//! # check(service);
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each refusal.

pub mod future;
mod gate;
mod layer;
mod service;

pub use self::layer::CooldownLayer;
pub use self::service::CooldownGate;
