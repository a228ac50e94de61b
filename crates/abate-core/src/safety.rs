//! May this request be sent twice?

use http::{HeaderMap, HeaderName, Method, StatusCode};

use crate::outcome::{Fault, Outcome};

/// The header that makes a repeat harmless at servers that deduplicate by it
/// (draft-ietf-httpapi-idempotency-key-header).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The caller's word on a request, put into its extensions: it wins over the method.
///
/// # Examples
///
/// A search that is sent as a POST:
///
/// ```
/// use abate_core::safety::Idempotent;
///
/// let mut request = http::Request::post("http://search.internal/query").body(())?;
/// request.extensions_mut().insert(Idempotent(true));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Idempotent(pub bool);

/// When a request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Safety {
    /// After any transient failure: sending it twice has the effect of sending it once.
    Repeatable,
    /// Only when the first is known not to have been carried out: it was never sent, or it was
    /// answered with 429.
    IfRefused,
}

impl Safety {
    /// Judges a request by the caller's mark, else its method (RFC 9110 section 9.2.2, and
    /// `QUERY`), else an `Idempotency-Key`.
    #[must_use]
    pub fn of(method: &Method, headers: &HeaderMap, mark: Option<Idempotent>) -> Self {
        let repeatable = match mark {
            Some(Idempotent(mark)) => mark,
            None => is_idempotent(method) || headers.contains_key(IDEMPOTENCY_KEY),
        };
        if repeatable { Self::Repeatable } else { Self::IfRefused }
    }

    /// Whether a repeat is harmless after `outcome`.
    #[must_use]
    pub fn allows_after(self, outcome: &Outcome<'_>) -> bool {
        match (self, outcome) {
            (Self::Repeatable, _) => true,
            (Self::IfRefused, Outcome::Fault(fault)) => *fault == Fault::Unsent,
            (Self::IfRefused, Outcome::Response { status, .. }) => {
                *status == StatusCode::TOO_MANY_REQUESTS
            }
        }
    }
}

fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS | Method::TRACE
    ) || method.as_str() == "QUERY"
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn method(name: &str) -> Method {
        name.parse().unwrap()
    }

    fn status(code: u16) -> Outcome<'static> {
        static NONE: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
        Outcome::Response { status: StatusCode::from_u16(code).unwrap(), headers: &NONE }
    }

    #[test]
    fn the_idempotent_methods_of_rfc_9110_and_query_repeat() {
        for name in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "QUERY"] {
            assert_eq!(Safety::of(&method(name), &HeaderMap::new(), None), Safety::Repeatable);
        }
        for name in ["POST", "PATCH", "CONNECT", "get", "LOCK"] {
            assert_eq!(Safety::of(&method(name), &HeaderMap::new(), None), Safety::IfRefused);
        }
    }

    #[test]
    fn a_key_makes_a_post_repeatable() {
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static("8e03978e"));
        assert_eq!(Safety::of(&Method::POST, &headers, None), Safety::Repeatable);
    }

    #[test]
    fn the_callers_mark_wins_both_ways() {
        let none = HeaderMap::new();
        assert_eq!(Safety::of(&Method::POST, &none, Some(Idempotent(true))), Safety::Repeatable);
        assert_eq!(Safety::of(&Method::GET, &none, Some(Idempotent(false))), Safety::IfRefused);
    }

    // ID-01
    #[test]
    fn a_post_repeats_only_when_it_was_provably_not_carried_out() {
        let post = Safety::IfRefused;
        assert!(post.allows_after(&Outcome::Fault(Fault::Unsent)));
        assert!(post.allows_after(&status(429)));
        for code in [408, 425, 500, 502, 503, 504] {
            assert!(!post.allows_after(&status(code)), "{code}");
        }
        assert!(!post.allows_after(&Outcome::Fault(Fault::Ambiguous)));
    }
}
