//! All six layers around a client, in the order in which they make sense, from one policy.
//!
//! ```text
//! deadline ─► retry ─► circuit breaker ─► retry-after ─► concurrency limit ─► attempt timeout ─► client
//! └ once per call ┘    └──────────────────────── once per attempt ────────────────────────┘
//! ```
//!
//! An open breaker refuses at once, before any queue. Waiting for a turn is not held against the
//! dependency. The attempt timeout is inside the breaker, so that a timeout is a recorded failure.
//!
//! # Examples
//!
//! ```
//! use std::time::Duration;
//! use abate::{Policy, Stack};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> Result<(), abate::PolicyError> {
//! let policy = Policy::builder().with_attempt_timeout(Duration::from_secs(3)).build()?;
//! let stack = Stack::new(policy);
//! let breaker = stack.breaker();
//! let client = ServiceBuilder::new()
//!     .layer(stack)
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # fn check<S: tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>>>(_: S) {}
//! # check(client);
//! # drop(breaker);
//! # Ok(())
//! # }
//! # build().unwrap();
//! ```

mod layer;

pub use self::layer::{Stack, StackService};
