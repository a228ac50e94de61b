//! Tries again what failed in passing, within a budget, and stops in time.
//!
//! **Protects from** failures that another attempt does not meet, without becoming one: retries are
//! a share of what succeeds, are spread by full jitter, obey the server, and none is started with less
//! than 50 ms left.
//!
//! **Stands** above everything that judges or limits an attempt, below what bounds the whole call.
//! A refusal of a layer below (breaker open, limit reached) ends the call: it is not repeated, is
//! no attempt, and costs no token.
//!
//! **Differs from [tower's `Retry`](https://docs.rs/tower/latest/tower/retry/)** in that the policy
//! is a value and not code, that requests need not be `Clone` (a body which streams is recorded
//! while it is sent, [within bounds](crate::ReplayBody), and is never an error), that a call which succeeds clones neither the request nor the service,
//! that there is a budget unless it is [refused in code](RetryLayer::without_budget), and that the
//! last response is returned as it is, with a [`Report`](crate::Report) in its extensions.
//!
//! | setting | default | why |
//! |---|---|---|
//! | attempts | 3, the first included | a fourth adds load where it no longer helps |
//! | backoff | 100 ms doubling to 10 s, full jitter | the first retry comes within a blip; jitter spreads the rest |
//! | total | 30 s: no retry starts with less than 50 ms of it left | about as long as a person, or a proxy, waits |
//! | budget | 20 % of what succeeds, and 0.2/s | carries 10 % of faults, and never adds more than a fifth to a load |
//! | statuses | 408, 425, 429, 500, 502, 503, 504 | what waiting may change |
//! | methods | idempotent ones (RFC 9110 section 9.2.2), or with an [`Idempotency-Key`](crate::IdempotencyKeyLayer); others when unsent or answered 429. Before these counts [a rule](crate::PolicyBuilder::with_idempotent), before that the request's [`Idempotent`](crate::Idempotent) mark | never do a thing twice |
//! | `Retry-After` | a floor, spread upwards; longer than the time left, the response is returned at once | nobody knocks early, or all at one moment |
//!
//! The head decides: with a good one the call is over, and a body that breaks off later is an error to
//! its reader, never tried again. To make the body a part of the attempt, lay a
//! [`BufferedResponseLayer`](crate::BufferedResponseLayer) below.
//! | bodies | whole in memory: any size; streams: the first 64 KiB are recorded, longer ones are sent once | a thousand calls at once keep 64 MiB at the most |
//!
//! An attempt that is answered amid its request may still be reading a stream. The retry waits until
//! the client lets go of it, through its backoff, or for 50 ms if that is shorter or if the answer has
//! a body; then the answer is handed on as it is, with
//! [`BodyNotReplayable`](crate::StopReason::BodyNotReplayable) in its report.
//!
//! A retry layer below another one stands down for the same call, so that attempts do not multiply;
//! behind a `Buffer` it knows only if the upper one is told to
//! [reach through](RetryLayer::through_spawned_layers). A layer in between that rewrites authority or
//! path hides that it is the same call.
//!
//! # Examples
//!
//! ```
//! use abate::{Policy, RetryLayer};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> Result<(), abate::PolicyError> {
//! let policy = Policy::builder().with_attempts(4).build()?;
//! let service = ServiceBuilder::new()
//!     .layer(RetryLayer::new(policy))
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # fn check<S: tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>>>(_: S) {}
//! # check(service);
//! # Ok(())
//! # }
//! # build().unwrap();
//! ```
//!
//! **Telemetry:** nothing for a call that succeeds at once; a `tracing` event at debug level for
//! each retry and for each call that ends without success.

mod call;
pub mod future;
mod kept;
mod layer;
mod pause;
mod pool;
mod recall;
mod service;
mod shared;

pub use self::layer::RetryLayer;
pub use self::service::Retry;
