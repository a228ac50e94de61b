use std::fmt;

use http::request::Parts;
use http::{Method, StatusCode};

use super::key::IDEMPOTENCY_KEY;
use crate::outcome::{Fault, Outcome};

/// The caller's word on a request, put into its extensions: it wins over all else.
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

/// Says of a request whether sending it twice has the effect of sending it once; `None` leaves it
/// to key and method.
pub type Rule = fn(&Parts) -> Option<bool>;

/// What requests may do that nothing says are idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum NonIdempotent {
    /// Be repeated only when the attempt is known not to have been carried out.
    #[default]
    IfRefused,
    /// Be repeated after any transient failure of the first attempt as well: what they do may be
    /// done twice, never three times.
    Once,
}

/// How requests are judged, in this order: the [`Idempotent`] mark in their extensions, the
/// [`Rule`], an `Idempotency-Key`, the method.
///
/// # Examples
///
/// ```
/// use abate_core::safety::{Rules, Safety};
///
/// let rules = Rules::new().with_idempotent(|head| (head.uri.path() == "/search").then_some(true));
/// let (search, _) = http::Request::post("/search").body(())?.into_parts();
/// let (order, _) = http::Request::post("/orders").body(())?.into_parts();
/// assert_eq!(rules.judge(&search), Safety::Repeatable);
/// assert_eq!(rules.judge(&order), Safety::IfRefused);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Rules {
    rule: Option<Rule>,
    non_idempotent: NonIdempotent,
}

impl Rules {
    /// No rule; what is not idempotent is repeated if it was refused.
    #[must_use]
    pub const fn new() -> Self {
        Self { rule: None, non_idempotent: NonIdempotent::IfRefused }
    }

    /// Asks `rule` of requests without a mark.
    #[must_use]
    pub const fn with_idempotent(self, rule: Rule) -> Self {
        Self { rule: Some(rule), ..self }
    }

    /// Treats as `non_idempotent` says what nothing says is idempotent.
    #[must_use]
    pub const fn with_non_idempotent(self, non_idempotent: NonIdempotent) -> Self {
        Self { non_idempotent, ..self }
    }

    /// When this request may be repeated.
    #[inline]
    #[must_use]
    pub fn judge(&self, head: &Parts) -> Safety {
        // Nearly every call, and nothing to look up.
        let usual = head.method == Method::GET && head.extensions.is_empty();
        if usual && self.rule.is_none() { Safety::Repeatable } else { self.look(head) }
    }

    fn look(&self, head: &Parts) -> Safety {
        let told = match head.extensions.get() {
            Some(&Idempotent(mark)) => Some(mark),
            None => self.rule.and_then(|rule| rule(head)),
        };
        match told {
            Some(true) => Safety::Repeatable,
            // In so many words: not even once.
            Some(false) => Safety::IfRefused,
            None if is_idempotent(&head.method) => Safety::Repeatable,
            None if head.headers.contains_key(IDEMPOTENCY_KEY) => Safety::Repeatable,
            None => match self.non_idempotent {
                NonIdempotent::IfRefused => Safety::IfRefused,
                NonIdempotent::Once => Safety::Once,
            },
        }
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        let same = match (self.rule, other.rule) {
            (Some(own), Some(other)) => std::ptr::fn_addr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        };
        same && self.non_idempotent == other.non_idempotent
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("rule", &self.rule.is_some())
            .field("non_idempotent", &self.non_idempotent)
            .finish()
    }
}

/// When a request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Safety {
    /// After any transient failure: sending it twice has the effect of sending it once.
    Repeatable,
    /// After any transient failure of the first attempt, and else as [`IfRefused`](Self::IfRefused).
    Once,
    /// Only when the attempt is known not to have been carried out: it was never sent, or it was
    /// answered with 429.
    IfRefused,
}

impl Safety {
    /// Whether a repeat is right after `outcome`, which is that of attempt number `attempt`, from 1.
    #[must_use]
    pub fn allows_after(self, outcome: &Outcome<'_>, attempt: u32) -> bool {
        let refused = match outcome {
            Outcome::Fault(fault) => *fault == Fault::Unsent,
            Outcome::Response { status, .. } => *status == StatusCode::TOO_MANY_REQUESTS,
        };
        match self {
            Self::Repeatable => true,
            Self::Once => refused || attempt <= 1,
            Self::IfRefused => refused,
        }
    }
}

/// RFC 9110 section 9.2.2, and `QUERY`.
fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS | Method::TRACE
    ) || method.as_str() == "QUERY"
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Request};

    use super::*;

    fn head(method: &str) -> Parts {
        let mut head = Request::new(()).into_parts().0;
        head.method = method.parse().unwrap();
        head
    }

    fn keyed(method: &str) -> Parts {
        let mut head = head(method);
        head.headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static("8e03978e"));
        head
    }

    fn marked(mut head: Parts, mark: bool) -> Parts {
        head.extensions.insert(Idempotent(mark));
        head
    }

    fn status(code: u16) -> Outcome<'static> {
        static NONE: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
        Outcome::Response { status: StatusCode::from_u16(code).unwrap(), headers: &NONE }
    }

    #[test]
    fn the_idempotent_methods_of_rfc_9110_and_query_repeat() {
        for name in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "QUERY"] {
            assert_eq!(Rules::new().judge(&head(name)), Safety::Repeatable);
        }
        for name in ["POST", "PATCH", "CONNECT", "get", "LOCK"] {
            assert_eq!(Rules::new().judge(&head(name)), Safety::IfRefused);
        }
    }

    // ID-07
    #[test]
    fn the_mark_wins_over_the_rule_the_rule_over_the_key_and_the_key_over_the_method() {
        let says = |rule: Rule| Rules::new().with_idempotent(rule);
        let (no, yes, unsure) = (says(|_| Some(false)), says(|_| Some(true)), says(|_| None));
        for (rules, head, repeatable) in [
            (Rules::new(), marked(head("POST"), true), true),
            (Rules::new(), marked(head("GET"), false), false),
            (Rules::new(), marked(keyed("POST"), false), false),
            (no, marked(head("POST"), true), true),
            (yes, marked(head("GET"), false), false),
            (yes, head("POST"), true),
            (no, head("GET"), false),
            (no, keyed("POST"), false),
            (unsure, keyed("POST"), true),
            (unsure, head("GET"), true),
            (unsure, head("POST"), false),
        ] {
            let expected = if repeatable { Safety::Repeatable } else { Safety::IfRefused };
            assert_eq!(rules.judge(&head), expected, "{rules:?} {head:?}");
        }
    }

    #[test]
    fn once_is_for_requests_of_which_nothing_is_said() {
        let once = Rules::new().with_non_idempotent(NonIdempotent::Once);
        assert_eq!(once.judge(&head("POST")), Safety::Once);
        assert_eq!(once.judge(&head("GET")), Safety::Repeatable);
        assert_eq!(once.judge(&keyed("POST")), Safety::Repeatable);
        assert_eq!(once.judge(&marked(head("POST"), false)), Safety::IfRefused);
        assert_eq!(once.with_idempotent(|_| Some(false)).judge(&head("POST")), Safety::IfRefused);
    }

    // ID-01
    #[test]
    fn a_post_repeats_only_when_it_was_provably_not_carried_out() {
        let unclear = [408, 425, 500, 502, 503, 504].map(status);
        let unclear = || unclear.iter().chain(&[Outcome::Fault(Fault::Ambiguous)]);
        for attempt in 1..5 {
            for safety in [Safety::IfRefused, Safety::Once] {
                assert!(safety.allows_after(&Outcome::Fault(Fault::Unsent), attempt));
                assert!(safety.allows_after(&status(429), attempt));
            }
            for outcome in unclear() {
                assert!(Safety::Repeatable.allows_after(outcome, attempt));
                assert!(!Safety::IfRefused.allows_after(outcome, attempt), "{outcome:?}");
                let once = Safety::Once.allows_after(outcome, attempt);
                assert_eq!(once, attempt == 1, "{outcome:?}");
            }
        }
    }

    #[test]
    fn rules_are_the_same_if_their_rule_is() {
        fn rule(_: &Parts) -> Option<bool> {
            Some(true)
        }
        let rules = Rules::new().with_idempotent(rule);
        assert_eq!(rules, Rules::new().with_idempotent(rule));
        assert_ne!(rules, Rules::new());
        assert_ne!(rules, rules.with_non_idempotent(NonIdempotent::Once));
    }
}
