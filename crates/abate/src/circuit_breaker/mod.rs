//! Stops calling a dependency that does not work, and finds out gently when it does again.
//!
//! **Protects from** load on a dependency that is down, which delays its recovery, and from callers
//! that wait for failures which are known beforehand.
//!
//! **Stands** below the retry, so that each attempt is judged, and above everything that queues, so
//! that a refusal comes at once. A refusal ends the call: the retry above neither repeats it nor
//! pays for it.
//!
//! **tower** has no circuit breaker.
//!
//! | setting | default | why |
//! |---|---|---|
//! | window | 5 s | long enough for a rate, short enough to forget health when it ends |
//! | failure rate | 50 %, and two standard deviations above it | bad luck alone seldom reaches it |
//! | minimum calls | 10 | with fewer, a rate is no rate |
//! | failures in a row | 10 over at least 2 s | for dependencies that are called too seldom for a rate |
//! | slow calls | off; [`with_breaker_slow_calls`](crate::PolicyBuilder::with_breaker_slow_calls) | what is slow, each dependency knows by itself |
//! | scope | one breaker; [`with_scope`](CircuitBreakerLayer::with_scope) | a stack is for one dependency |
//! | open for | 2 s four times, then 4, 8, 16, 30 s, jittered downwards by up to half | a blip ends soon, an outage is left in peace |
//! | probes | 3 | one could be luck |
//!
//! A failure is a 5xx that the policy retries, a fault of the connection, or an attempt timeout. A
//! 4xx says nothing about health, nor does a refusal of our own. A caller that gives up counts only
//! if it had waited half the attempt timeout (or what counts as slow, if that is set). A body that
//! breaks off makes a failure of its success.
//!
//! Refusals come from `call`; `poll_ready` is that of the service below. A refused call gives back
//! what that service had reserved for it, by way of a clone, so it must be `Clone`.
//!
//! [`BreakerHandle`] runs it by hand: forced open, disabled, observing only, or afresh.
//!
//! # Examples
//!
//! ```
//! use abate::{BreakerState, CircuitBreakerLayer, Policy};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! let breaker = CircuitBreakerLayer::new(Policy::default());
//! let handle = breaker.handle();
//! let service = ServiceBuilder::new()
//!     .layer(breaker)
//!     .service(Client::builder(TokioExecutor::new()).build_http::<http_body_util::Empty<bytes::Bytes>>());
//! assert_eq!(handle.state(), BreakerState::Closed);
//! # drop(service);
//! ```
//!
//! **Telemetry:** a `tracing` event for each transition (warn when it opens, else info) and, at
//! debug level, for each refusal.

mod breakers;
pub mod future;
mod handle;
mod layer;
mod service;

pub use self::handle::BreakerHandle;
pub use self::layer::CircuitBreakerLayer;
pub use self::service::CircuitBreaker;
