//! Knows the outcome of a gRPC call, which is not in the HTTP status, before the answer is handed up
//! (feature `grpc`).
//!
//! **Protects from** taking 200 for a success. gRPC answers with it whatever happens; what came of
//! the call is in `grpc-status`, in the headers where the server failed at once and else in the
//! trailers. [`PolicyBuilder::with_grpc`](crate::PolicyBuilder::with_grpc) makes retry, budget and
//! breaker judge by the headers; this layer sees to it that a failure in trailers is there as well,
//! if nothing came before them.
//!
//! **Stands** lowest, directly on the client, so that the attempt timeout and the deadline hold for
//! it: once per attempt.
//!
//! **tower** has nothing like it. gRPC's own retries ([gRFC A6]) end with the first header, since
//! the application has seen it; here it has not, and a failure that has only trailers behind the
//! headers, as proxies like to write it, is still tried again.
//!
//! | the answer | what becomes of it |
//! |---|---|
//! | `grpc-status` in the headers | handed up as it is; no frame is looked at |
//! | a first frame of data | handed up, the frame first and unchanged: a success to retry and budget, whatever the trailers will say. A failure there adds one to the breaker's, when it is read |
//! | nothing but trailers that tell of a failure | they become headers: the same answer as gRPC's *Trailers-Only*, message, details and pushback included |
//! | nothing but other trailers, or nothing | handed up as it is |
//! | the body breaks off first | the attempt failed, with that error |
//! | no frame yet, after 50 ms | handed up, as one of data would be |
//! | gRPC-Web | its trailers are data, and not read: only the headers count |
//! | not a 200, or some other `content-type` | handed up; its status is the outcome |
//!
//! [What each code means](crate::decisions::grpc) is one table for all layers.
//!
//! # What it waits for
//!
//! At most one frame, and at most 50 ms after the head
//! ([`with_look_ahead`](GrpcStatusLayer::with_look_ahead)). Servers send the head of a unary answer
//! when they have all of it, so the frame is right behind and nothing is waited for; the head of a
//! stream that is silent for minutes comes up 50 ms late, and its messages when they come.
//!
//! # What may be repeated
//!
//! Every call of gRPC is a `POST`. It is tried again if it was never sent, if the server asks for it
//! with a delay in `grpc-retry-pushback-ms`, or after any transient failure if the caller says that
//! this does no harm: `request.extensions_mut().insert(abate::Idempotent(true))`, also on a
//! `tonic::Request`. `RESOURCE_EXHAUSTED` alone is no such word, and neither is `UNAVAILABLE`.
//!
//! # Long streams
//!
//! A stream that is open for hours would keep its place in a concurrency limit for hours:
//! [`Stack::with_hold`](crate::Stack::with_hold)`(`[`Hold::Head`](crate::Hold::Head)`)`.
//!
//! # Examples
//!
//! ```
//! use abate::grpc::GrpcStatusLayer;
//! use abate::{Hold, Policy, Stack};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use tower::ServiceBuilder;
//!
//! # fn build() -> Result<(), abate::PolicyError> {
//! let stack = Stack::new(Policy::builder().with_grpc().build()?).with_hold(Hold::Head);
//! let client = ServiceBuilder::new()
//!     .layer(stack)
//!     .layer(GrpcStatusLayer::new())
//!     .service(Client::builder(TokioExecutor::new()).http2_only(true).build_http());
//! # fn check<S: tower::Service<http::Request<http_body_util::Full<bytes::Bytes>>>>(_: S) {}
//! # check(client);
//! # Ok(())
//! # }
//! # build().unwrap();
//! ```
//!
//! A `tonic::transport::Channel` takes tonic's own body alone, so one `MapRequest` stands between;
//! the README has the types. An [`Error`](crate::Error) of ours reaches the caller in the source of
//! a `tonic::Status`, with `Code::Unknown`: [`Error::find`](crate::Error::find) digs it out.
//!
//! **Telemetry:** none of its own.
//!
//! [gRFC A6]: https://github.com/grpc/proposal/blob/master/A6-client-retries.md

mod body;
pub mod future;
mod layer;
mod service;

pub use self::body::PeekedBody;
pub use self::layer::{GrpcStatusLayer, LOOK_AHEAD};
pub use self::service::GrpcStatus;
pub use abate_core::grpc::judge;
