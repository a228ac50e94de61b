//! Puts other people's retries on a budget.
//!
//! **Protects from** retry loops that are not ours: tower's `Retry`, an application's `for`, a
//! client library's. What they repeat beyond the budget is refused here, before it is sent.
//!
//! **Stands** below those retries and above everything that judges or limits an attempt. Our own
//! [`RetryLayer`](crate::RetryLayer) has its budget inside and does not need it.
//!
//! **Differs from tower's `Budget`** in that no retry policy has to ask it, that it is exact, and
//! that what was saved in good times is not spent in one second.
//!
//! A repeat is known by one of these:
//! * our retry layer above, in the same task;
//! * an [`Attempt`](crate::Attempt) in the request's extensions: one line in a
//!   `tower::retry::Policy` puts it there, [`Attempt::mark_repeat`](crate::Attempt::mark_repeat);
//! * a header that counts attempts from 1, named with
//!   [`with_attempt_header`](RetryBudgetLayer::with_attempt_header).
//!
//! Without any, every request is taken for a first attempt and only earns; a warning says so, once.
//! A repeat that was paid for from the very same budget above is not charged again.
//!
//! | setting | default | why |
//! |---|---|---|
//! | ratio | 20 % of what succeeds | carries 10 % of faults, and never adds more than a fifth to a load |
//! | floor | 0.2 retries per second | enough for a quiet process, little for a thousand of them |
//! | pace | at most a second's wait for a slot | beyond it a caller would be held for a retry that comes too late |
//!
//! # Examples
//!
//! Under tower's retry:
//!
//! ```
//! use abate::{Attempt, Policy, RetryBudgetLayer};
//! use http::{Request, Response};
//! use tower::retry::{Policy as Retries, RetryLayer};
//!
//! #[derive(Clone)]
//! struct Thrice(u32);
//!
//! impl<B, E> Retries<Request<String>, Response<B>, E> for Thrice {
//!     type Future = std::future::Ready<()>;
//!
//!     fn retry(
//!         &mut self,
//!         request: &mut Request<String>,
//!         result: &mut Result<Response<B>, E>,
//!     ) -> Option<Self::Future> {
//!         let failed = !matches!(result, Ok(response) if !response.status().is_server_error());
//!         self.0 = self.0.checked_sub(1)?;
//!         Attempt::mark_repeat(request.extensions_mut());
//!         failed.then(|| std::future::ready(()))
//!     }
//!
//!     fn clone_request(&mut self, request: &Request<String>) -> Option<Request<String>> {
//!         Some(request.clone())
//!     }
//! }
//!
//! let layers = tower::ServiceBuilder::new()
//!     .layer(RetryLayer::new(Thrice(2)))
//!     .layer(RetryBudgetLayer::new(Policy::default()));
//! # drop(layers);
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each repeat that is refused, and one warning
//! if nothing above marks its repeats.

pub mod future;
mod layer;
mod service;
mod terms;

pub use self::layer::RetryBudgetLayer;
pub use self::service::RetryBudget;
