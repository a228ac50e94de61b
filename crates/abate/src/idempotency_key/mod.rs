//! Gives each operation a key by which the server can tell a repeat from another one.
//!
//! **Protects from** doing a thing twice, and from not daring to repeat it: a POST whose response is
//! lost may have been carried out. With a key that is the same on every attempt, a server that
//! remembers keys carries it out once and gives the same answer again, so
//! [`RetryLayer`](crate::RetryLayer) repeats it like a GET. A server that ignores the header will do
//! it twice all the same: put this layer only in front of one that says it deduplicates.
//!
//! **Stands** above the retry (and above [`Stack`](crate::Stack)), once per call. Below a retry there
//! would be a key for each attempt, and none for the operation: there the layer makes none, says so
//! once with a warning, and leaves the request as it is. It knows by the call context
//! ([`Attempt::current`](crate::Attempt::current)) and by the mark of a repeat in the extensions; what
//! it cannot see is a first attempt of somebody else's retry, or one behind a `Buffer`.
//!
//! **tower** has nothing like it. tower-http's `SetRequestId` looks alike, and names a request in logs:
//! nothing keeps it from being another one on each attempt.
//!
//! | setting | default | why |
//! |---|---|---|
//! | requests | POST and PATCH | the other methods are idempotent; [by a rule](IdempotencyKeyLayer::with_rule) others |
//! | the caller's own key | kept, to the byte | it may come from further up: a browser, a queue |
//! | key | a random UUID (version 4) of the system's generator | what [Stripe] and [Adyen] advise; 122 bits that nobody can guess |
//! | form | bare: `8e03978e-40d5-…` | what these two and most others show, and some check that it is a UUID; in the [draft] it is a structured field, [in quotes](IdempotencyKeyLayer::quoted) |
//! | header | `Idempotency-Key` | the draft's name; [others](IdempotencyKeyLayer::with_header) have others |
//! | in `Debug` output | hidden | who knows a key may get at what was answered to it; [`visible`](IdempotencyKeyLayer::visible) shows it |
//! | no key can be made | the call is refused | what was to have a key is sent neither without one nor with a weak one |
//!
//! What makes a repeat harmless is the server's memory, so look how long it is (a day at Stripe), what it
//! takes for a key (32 characters at Amazon Pay: [make one](IdempotencyKeyLayer::with_key)), and what it says to
//! a repeat that comes while the first attempt is still at work: 409 in the draft (section 2.7). That
//! is not retried, unless a [judge](crate::PolicyBuilder::with_judge) says so. An operation that outlives the
//! process (in a queue, in a saga) needs a key that is kept with it: bring it along.
//!
//! `examples/idempotent_payment.rs` makes a thousand payments where 30 % of the responses are lost.
//!
//! A key costs its call an allocation, what the header map needs to grow by one, and a system call. A
//! call that gets none pays nothing.
//!
//! [Stripe]: https://docs.stripe.com/api/idempotent_requests
//! [Adyen]: https://docs.adyen.com/development-resources/api-idempotency
//! [draft]: https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
//!
//! # Examples
//!
//! The first answer is lost, and the repeat carries the same key:
//!
//! ```
//! use abate::test::{Answer, Dependency};
//! use abate::{Fault, IdempotencyKeyLayer, Policy, Stack};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let bank = Dependency::answering([Answer::fault(Fault::Ambiguous), Answer::status(201)]);
//! let service = ServiceBuilder::new()
//!     .layer(IdempotencyKeyLayer::new())
//!     .layer(Stack::new(Policy::default()))
//!     .service(bank.clone());
//!
//! let payment = http::Request::post("http://bank.internal/payments").body(String::from("7 €"))?;
//! assert_eq!(service.oneshot(payment).await?.status(), 201);
//!
//! let sent = bank.requests();
//! assert_eq!(sent.len(), 2);
//! assert_eq!(sent[0].headers()["idempotency-key"], sent[1].headers()["idempotency-key"]);
//! # Ok(())
//! # }
//! ```
//!
//! **Telemetry:** a `tracing` event at debug level for each refusal, and one warning if it stands below
//! a retry. Never a key.

pub mod future;
mod layer;
mod service;
mod terms;

pub use self::layer::IdempotencyKeyLayer;
pub use self::service::IdempotencyKey;
