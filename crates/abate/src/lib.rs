//! Tower layers that keep an HTTP client from turning a dependency's slow minute into its own
//! outage.
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `hyper` (default) | the errors of hyper and of hyper-util's client are known by their types |
//! | `client` | `client`: a client that is ready to use, with HTTPS, HTTP/2, redirects and decompression |
//! | `reqwest` | `reqwest_client`: reqwest's client below the layers, its requests and responses above |
//! | `reqwest-middleware` | [`Stack`] and [`RetryLayer`] as middleware of that crate |
//! | `axum` | an [`Error`] is a response |
//! | `hyper` (default) | recognises the errors of hyper and of hyper-util's client by their types |
//! | `axum` | makes a response of an [`Error`]: 502, 503 or 504 |
//! | `grpc` | the module `grpc`: gRPC's outcomes, for tonic and others; no dependency |

pub mod attempt_timeout;
pub mod body;
mod budget;
pub mod buffered_response;
pub mod circuit_breaker;
#[cfg(feature = "client")]
pub mod client;
mod clock;
pub mod concurrency_limit;
mod context;
pub mod cooldown;
pub mod deadline;
mod delayed;
mod error;
pub mod fault;
pub mod fleet;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod idempotency_key;
#[cfg(feature = "axum")]
mod into_response;
mod observe;
mod permits;
mod report;
#[cfg(feature = "reqwest")]
pub mod reqwest_client;
pub mod retry;
pub mod retry_after;
pub mod retry_budget;
pub mod scope;
pub mod stack;
pub mod test;
mod timer;

/// The decisions behind the layers, for queue workers and tests that have no tower.
pub use abate_core as decisions;
#[doc(inline)]
pub use abate_core::{
    backoff::{Backoff, Curve, DelaySource, Jitter},
    breaker::State as BreakerState,
    budget::Earn,
    classify::{Judge, Transient, Verdict},
    deadline::Deadline,
    outcome::Fault,
    policy::{Policy, PolicyBuilder, PolicyError},
    ratio::Ratio,
    retry_after::{HintSources, Pushback, PushbackHeader, ResetUnit},
    safety::{Idempotent, NonIdempotent},
    session::StopReason,
};

pub use self::attempt_timeout::AttemptTimeoutLayer;
pub use self::body::{ReplayBody, ResponseBody};
pub use self::budget::BudgetHandle;
pub use self::buffered_response::{BufferedBody, BufferedResponseLayer};
pub use self::circuit_breaker::{BreakerHandle, CircuitBreakerLayer};
#[cfg(feature = "client")]
pub use self::client::{Body, Client, ClientBuilder, client};
pub use self::concurrency_limit::{ConcurrencyLimitHandle, ConcurrencyLimitLayer, Hold};
pub use self::context::Attempt;
pub use self::cooldown::CooldownLayer;
pub use self::deadline::DeadlineLayer;
pub use self::error::{BoxError, Error, ErrorKind};
pub use self::idempotency_key::IdempotencyKeyLayer;
pub use self::report::{Report, Tried, TriedResult};
#[cfg(feature = "reqwest")]
pub use self::reqwest_client::{ReqwestClient, ReqwestService};
pub use self::retry::RetryLayer;
pub use self::retry_after::RetryAfterLayer;
pub use self::retry_budget::RetryBudgetLayer;
pub use self::scope::Scope;
pub use self::stack::{Stack, StackService};
