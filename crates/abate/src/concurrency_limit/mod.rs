//! Bounds how many calls are in flight, to the end of their response bodies.
//!
//! **Protects from** a slow dependency that soaks up every worker, connection and byte of memory
//! its callers have (Little's law: calls in flight = rate × latency).
//!
//! **Stands** below the breaker, so that a queue never forms in front of a dependency that is known
//! to be down, and above the attempt timeout, so that waiting here is not held against the
//! dependency.
//!
//! **Differs from [tower's `ConcurrencyLimit`](https://docs.rs/tower/latest/tower/limit/)** in that
//! the permit is taken by the call and not in `poll_ready` (a handle that sits ready takes nothing
//! from anyone), that it is held until the response *body* has been read or dropped, and that the
//! wait for it is bounded and ends in a typed refusal.
//!
//! | setting | default | why |
//! |---|---|---|
//! | limit | explicit here; none in [`Stack`](crate::Stack) | no number fits all: a fixed 64 refuses a third of a healthy 1,000/s at 100 ms. About 2 × peak rate × p99 |
//! | hold | to the end of the body | what a connection, and the dependency, are busy for; [`Hold::Head`] for gRPC and SSE |
//! | wait | 1 s | a caller that waits longer for its turn is better told so; 0 for callers who hold something |
//!
//! The limit can be changed while calls are in flight ([`ConcurrencyLimitHandle::set_max`]).
//!
//! # Examples
//!
//! ```
//! use abate::ConcurrencyLimitLayer;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> Result<(), abate::PolicyError> {
//! let limit = ConcurrencyLimitLayer::new(200)?;
//! let handle = limit.handle();
//! let service = ServiceBuilder::new()
//!     .layer(limit)
//!     .service(Client::builder(TokioExecutor::new()).build_http::<http_body_util::Empty<bytes::Bytes>>());
//! assert_eq!((handle.in_use(), handle.max()), (0, Some(200)));
//! # drop(service);
//! # Ok(())
//! # }
//! # build().unwrap();
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each refusal.

pub mod future;
mod handle;
mod hold;
mod layer;
mod service;

pub use self::handle::ConcurrencyLimitHandle;
pub use self::hold::Hold;
pub use self::layer::ConcurrencyLimitLayer;
pub use self::service::ConcurrencyLimit;
