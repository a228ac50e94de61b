//! For tests of code around these layers: a dependency by script, and no waits.
//!
//! **Protects from** tests that sleep, that listen on a port, or that pass by luck.
//!
//! **Stands** where the client would: [`Dependency`] below a [`Stack`](crate::Stack) or any layer,
//! and [`Probe`] below a layer of one's own, which it checks for the readiness that tower asks for.
//!
//! **Differs from [`tower-test`](https://docs.rs/tower-test)** in that the answers are given
//! beforehand, so that nothing has to play the server while the call runs, in that it answers HTTP
//! and fails with a [`Fault`](crate::Fault) of choice, and in that it works below a retry.
//!
//! | what would make a test slow, or differ from run to run | what to do |
//! |---|---|
//! | backoff, `Retry-After`, timeouts, an open breaker | `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`): all of it reads tokio's clock, which jumps to the next timer as soon as every task waits. Times are those of production, and can be asserted |
//! | backoff beside real sockets or threads, where that clock must run | [`Policy::without_backoff`](crate::Policy::without_backoff): what a server asks for is waited for all the same |
//! | jitter | [`Stack::with_seed`](crate::Stack::with_seed), [`RetryLayer::with_seed`](crate::RetryLayer::with_seed): the same waits in every run |
//! | budget and breaker, which remember earlier calls | a new `Stack` for each test: a fresh budget has the retries of one call, and earns more by success |
//!
//! Nothing here switches a layer into another mode: what is tested is what will run.
//!
//! # Examples
//!
//! ```
//! use abate::test::{Answer, Dependency};
//! use abate::{Fault, Policy, Stack};
//! use tower::{Layer, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower::BoxError> {
//! // In a `#[tokio::test(start_paused = true)]`:
//! let stock = Dependency::answering([
//!     Answer::fault(Fault::Unsent),
//!     Answer::status(429).with_header("retry-after", "2"),
//!     Answer::status(200).with_body("seven"),
//! ]);
//! let service = Stack::new(Policy::default()).with_seed(1).layer(stock.clone());
//!
//! let start = tokio::time::Instant::now();
//! let request = http::Request::get("http://stock.internal/items/7").body(String::new())?;
//! let response = service.oneshot(request).await?;
//!
//! assert_eq!(response.status(), 200);
//! assert_eq!(stock.attempts(), [1, 2, 3]);
//! assert_eq!(stock.requests()[2].uri().path(), "/items/7");
//! assert!(start.elapsed().as_secs() >= 2, "in a moment, by the clock on the wall");
//! # Ok(())
//! # }
//! ```
//!
//! **Telemetry:** none of its own; the layers above tell theirs.

mod answer;
mod dependency;
pub mod future;
mod probe;
mod record;

pub use self::answer::{Answer, AnswerBody};
pub use self::dependency::Dependency;
pub use self::probe::Probe;

#[cfg(test)]
mod tests;
