//! What an error means for a repeat, found by the types in its chain and never by its text.
//!
//! **Protects from** a write that is done twice, because an error looked as if the request had not
//! been sent; and from retries that cannot help, at a certificate that has expired, say.
//!
//! **Stands** below the layers: each asks [`of`] about an error of the client's, and
//! [`Error::fault`](crate::Error::fault) tells the caller. Errors are recognised wherever they are
//! in the chain, in a foreign layer's box or inside an [`io::Error`](std::io::Error), whose `source`
//! skips what it holds.
//!
//! **Differs from** the usual `is_connect() || is_timeout()` in that a reset inside a TLS handshake
//! is told from one after the request, and a stream that HTTP/2 declares untouched from one that
//! died, so that a POST is repeated when that is safe and only then.
//!
//! # What is recognised
//!
//! | by (feature) | error | fault | why |
//! |---|---|---|---|
//! | [`Known`] | | its own | whoever made it knows |
//! | std | [`io::Error`](std::io::Error) of kind `ConnectionRefused`, `AddrNotAvailable` | unsent | come of connecting alone |
//! | | any other kind: `ConnectionReset`, `TimedOut`, `HostUnreachable` … | ambiguous | they befall standing connections too |
//! | hyper-util (`hyper`) | `is_connect()`: DNS, TCP, proxy, TLS, whatever is inside | unsent, unless a cause is permanent | no connection, so no request |
//! | | a connection broke before it was handed a request: the preface of HTTP/2 | unsent, unless a cause is permanent | likewise |
//! | | without a cause: a relative URI, a version or method that cannot be sent | permanent | the request itself |
//! | hyper (`hyper`) | `is_canceled()`, `is_closed()` | unsent | taken back out of the queue before a byte was written |
//! | | `is_user()`: the request's own body failed | permanent | no other attempt mends it, and the peer is not to blame |
//! | | `is_incomplete_message()`, `is_parse()`, I/O, keep-alive timeout of HTTP/2 … | ambiguous | RFC 9110 section 9.2.2: it may have been carried out; so the race for an idle connection (RFC 9112 section 9.3.1) |
//! | h2 (`h2`) | `RST_STREAM` with `REFUSED_STREAM` | unsent | RFC 9113 section 8.7: no processing has occurred |
//! | | `GOAWAY`, streams above its last one, any code | unsent | RFC 9113 sections 6.8 and 8.7: not processed, and never will be |
//! | | streams up to the last one that die with the connection | ambiguous | section 6.8: might have been acted on |
//! | | `HTTP_1_1_REQUIRED`, `INADEQUATE_SECURITY` | permanent | section 7: the next connection is the same |
//! | | `INTERNAL_ERROR`, `ENHANCE_YOUR_CALM`, `CANCEL`, `PROTOCOL_ERROR`, `NO_ERROR` … from the peer | ambiguous | section 7: none of them says how far it came |
//! | | errors that h2 itself finds in what the peer sent | ambiguous | it answered something |
//! | | `CANCEL` of our own | cancelled | section 7: no longer needed |
//! | | other resets of our own, errors in what h2 was asked to send | permanent | as hyper's `is_user()` |
//! | rustls (`rustls`) | a certificate that is refused (expired, unknown issuer, other name …), none at all, a revocation list that is invalid | permanent | waiting does not change it |
//! | | no version, cipher or protocol in common; keys that do not match | permanent | likewise |
//! | | alerts by which the peer refuses: `handshake_failure`, `certificate_required`, `unknown_ca`, `access_denied`, `protocol_version`, `unrecognized_name` … | permanent | RFC 8446 section 6.2 |
//! | | anything else: damaged records, `internal_error`, a reset amid the handshake | as the connection has it: unsent while connecting, else ambiguous | may go well next time |
//! | reqwest (`reqwest`) | `is_builder()`, `is_redirect()` | permanent | the request itself; a loop |
//! | | `is_status()` | permanent, or ambiguous if the status is one that is retried | it was answered |
//! | | `is_connect()`, `is_timeout()`, `is_request()`, `is_body()`, `is_decode()` | by the causes below, else ambiguous | a timeout of reqwest's can strike at any moment, unless while connecting |
//! | anything else | | ambiguous | repeated only where that is harmless |
//!
//! An error that is the last word on it ([`Known`], permanent, untouched by HTTP/2) counts wherever
//! it stands; of the others, the outermost. What is below a request's own body that failed is about
//! somebody else's request and is not looked at.
//!
//! # What is not
//!
//! * **DNS.** std and `getaddrinfo` give a failed look-up no type and no code, so a name that does
//!   not exist is unsent, like one whose server was slow: tried again, within attempts and budget.
//!   Resolvers with typed errors (hickory) move these from one version to the next, and a type
//!   that is a version off is silently not recognised: let the resolver say it by [`Known`], which
//!   holds also inside a connect error.
//! * **OpenSSL, Schannel, Secure Transport** (`native-tls`): a certificate that is refused there is
//!   unsent, since native-tls does not tell.
//! * **HTTP/2 without the feature `h2`**: all that a peer resets is ambiguous.
//! * **hyper's "dispatch task is gone"** (the runtime of a pooled connection was shut down, or a
//!   connection ended while a request waited for a free stream) has no type of its own: it is an
//!   `is_user()`, so permanent.
//! * **An attempt timeout while connecting**: [`AttemptTimeoutLayer`](crate::AttemptTimeoutLayer)
//!   does not see how far the client is, so it is ambiguous. A timeout of the connector's own
//!   (reqwest's `connect_timeout`, or `tower::timeout` around an `HttpsConnector`), shorter than
//!   that, is unsent, and a POST is tried again.
//!
//! Recognised are the types of hyper 1, hyper-util 0.1, h2 0.4, rustls 0.23 and reqwest 0.13; of
//! reqwest 0.12 the causes, which are the same. A feature of a library that the client does not use
//! costs its compilation and nothing else.
//!
//! **Telemetry:** none of its own; retries and refusals tell theirs.

mod chain;
#[cfg(feature = "h2")]
mod h2;
#[cfg(feature = "hyper")]
mod hyper;
mod known;
mod of;
#[cfg(feature = "reqwest")]
mod reqwest;
#[cfg(feature = "rustls")]
mod rustls;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use self::chain::chain;
pub use self::known::Known;
pub use self::of::of;
pub(crate) use self::of::of_with;
