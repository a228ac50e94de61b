//! reqwest below the layers, above them, and around them.
//!
//! **At the bottom** [`ReqwestService`] makes a `reqwest::Client` a service of `http::Request`, as the
//! layers here and those of tower-http call it. [`ReqwestService::build`] switches off the repeats
//! that reqwest makes by itself.
//!
//! **At the top** [`ReqwestClient`] takes a `reqwest::Request`, as `RequestBuilder::build` makes it,
//! and answers with a `reqwest::Response`: nothing else changes in code that uses reqwest. URL with
//! fragment, version, timeout and extensions come through. The timeout of a request
//! (`RequestBuilder::timeout`) is reqwest's, and holds for each attempt and its body; that of the
//! call is the [policy's](crate::PolicyBuilder::with_total_timeout).
//!
//! **In between** stands the same [`Stack`](crate::Stack) as elsewhere. Redirects are reqwest's own: they
//! stand below, so a repeat begins at the request's own URL, and a hop is no attempt.
//!
//! **With the feature `reqwest-middleware`** a [`Stack`](crate::Stack) and a
//! [`RetryLayer`](crate::RetryLayer) are middleware of that crate, the latter in place of
//! reqwest-retry's: `ClientBuilder::new(client).with(Stack::new(policy))`. What comes next is called once
//! for each attempt, with the caller's extensions as they were; those of the last attempt are the
//! caller's afterwards. There too [`Idempotent`](crate::Idempotent) and [`Deadline`](crate::Deadline)
//! are found.
//!
//! A body that reqwest has in memory is sent again without a copy. A stream is recorded as it is sent,
//! and sent again up to 64 KiB.
//!
//! # Errors
//!
//! An [`Error`](crate::Error) whose source is the `reqwest::Error`. Under reqwest-middleware it is what
//! `reqwest_middleware::Error::Middleware` holds: `error.downcast_ref::<abate::Error>()`.
//!
//! # Examples
//!
//! ```no_run
//! use abate::{Policy, ReqwestClient, ReqwestService, Scope, Stack};
//!
//! # async fn call() -> Result<(), Box<dyn std::error::Error>> {
//! let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//! let stack = Stack::new(Policy::default()).with_scope(Scope::PerAuthority);
//! let client = ReqwestClient::new(ReqwestService::new(http.clone()), &stack);
//!
//! let request = http.put("http://stock.internal/items/7").body("3").build()?;
//! let response = client.execute(request).await?.error_for_status()?;
//! println!("{} {:?}", response.url(), response.extensions().get::<abate::Report>());
//! println!("{}", response.text().await?);
//! # Ok(())
//! # }
//! ```
//!
//! **Telemetry:** that of the layers in between.

mod client;
mod convert;
pub mod future;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod service;

pub use self::client::ReqwestClient;
pub use self::service::ReqwestService;
