//! What gRPC says of an outcome, which is not in the HTTP status: that is 200 whatever happens.
//!
//! | code | verdict | why |
//! |---|---|---|
//! | `OK` (0) | success | |
//! | `UNAVAILABLE` (14) | transient, the server's | the one code that every gRPC client retries; it does not say that nothing was done |
//! | `RESOURCE_EXHAUSTED` (8) | transient, it asks for patience | what 429 is to HTTP: no failure to a breaker |
//! | `DEADLINE_EXCEEDED` (4) | transient, ambiguous | time ran out over there, and the work may have been done |
//! | `INTERNAL` (13), `UNKNOWN` (2) | transient, the server's | what 500 is to HTTP; libraries answer with them when a handler throws |
//! | any other number, or none | as `UNKNOWN` | so the specification has it |
//! | `ABORTED` (10) | rejected | to be tried again from further up, by reading anew: it will conflict again as it is |
//! | `INVALID_ARGUMENT` (3), `NOT_FOUND` (5), `ALREADY_EXISTS` (6), `PERMISSION_DENIED` (7), `FAILED_PRECONDITION` (9), `OUT_OF_RANGE` (11), `UNAUTHENTICATED` (16) | rejected | the server works, the request does not |
//! | `CANCELLED` (1), `UNIMPLEMENTED` (12), `DATA_LOSS` (15) | permanent | somebody gave up; 501; what is lost stays lost |
//! | no `grpc-status` | by the HTTP status | something before the server answered: 502, 503, 504 |
//!
//! Every call of gRPC is a `POST`, so a transient failure is repeated only where the caller marks
//! the call as [`Idempotent`](crate::safety::Idempotent), or where the server gives a delay in
//! `grpc-retry-pushback-ms` and so asks for the repeat itself
//! ([gRFC A6](https://github.com/grpc/proposal/blob/master/A6-client-retries.md#pushback)).
//! `RESOURCE_EXHAUSTED` alone, unlike a 429, is no word that nothing was done: libraries also send
//! it for an answer that grew too large, when the handler is through.

use http::{HeaderMap, HeaderName, StatusCode};

use crate::classify::{Transient, Verdict};

/// The header, or trailer, that has the outcome of a call.
pub static STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A [`Judge`](crate::classify::Judge) by `grpc-status`, where there is one.
///
/// # Examples
///
/// A service that loses races and wants them run again:
///
/// ```
/// use abate_core::classify::{Transient, Verdict};
/// use abate_core::grpc;
/// use abate_core::policy::Policy;
///
/// let policy = Policy::builder()
///     .with_grpc()
///     .with_judge(|status, headers| match headers.get(&grpc::STATUS)?.as_bytes() {
///         b"10" => Some(Verdict::Transient(Transient::Server)), // ABORTED
///         _ => grpc::judge(status, headers),
///     })
///     .build()?;
/// # drop(policy);
/// # Ok::<(), abate_core::policy::PolicyError>(())
/// ```
#[must_use]
pub fn judge(_: StatusCode, headers: &HeaderMap) -> Option<Verdict> {
    headers.get(&STATUS).map(|code| verdict(code.as_bytes()))
}

/// Whether headers, or trailers, tell of a call that did not end well.
#[must_use]
pub fn tells_of_failure(headers: &HeaderMap) -> bool {
    headers.get(&STATUS).is_some_and(|code| code.as_bytes() != b"0")
}

fn verdict(code: &[u8]) -> Verdict {
    match code {
        b"0" => Verdict::Success,
        b"8" => Verdict::Transient(Transient::Asked),
        b"4" => Verdict::Transient(Transient::Ambiguous),
        b"3" | b"5" | b"6" | b"7" | b"9" | b"10" | b"11" | b"16" => Verdict::Rejected,
        b"1" | b"12" | b"15" => Verdict::Permanent,
        // 2, 13, 14, and what nobody knows.
        _ => Verdict::Transient(Transient::Server),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::classify::{Classifier, Health};
    use crate::outcome::Outcome;

    fn headers(code: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(STATUS.clone(), HeaderValue::from_static(code))])
    }

    fn judged(code: &'static str) -> (Verdict, Health) {
        let classifier = Classifier::default().with_judge(judge);
        let headers = headers(code);
        let outcome = Outcome::Response { status: StatusCode::OK, headers: &headers };
        (classifier.verdict(&outcome), classifier.health(&outcome))
    }

    // CL-04
    #[test]
    fn each_code_has_the_verdict_of_the_table() {
        let server = (Verdict::Transient(Transient::Server), Health::Failure);
        assert_eq!(judged("0"), (Verdict::Success, Health::Success));
        for code in ["2", "13", "14", "17", "99", "-1", "014", "what", ""] {
            assert_eq!(judged(code), server, "{code}");
        }
        assert_eq!(judged("4"), (Verdict::Transient(Transient::Ambiguous), Health::Failure));
        assert_eq!(judged("8"), (Verdict::Transient(Transient::Asked), Health::Answered));
        for code in ["3", "5", "6", "7", "9", "10", "11", "16"] {
            assert_eq!(judged(code), (Verdict::Rejected, Health::Answered), "{code}");
        }
        for code in ["1", "12", "15"] {
            assert_eq!(judged(code), (Verdict::Permanent, Health::Answered), "{code}");
        }
    }

    #[test]
    fn without_a_code_the_http_status_decides_and_with_one_it_does_not() {
        let judged = |status, headers: &HeaderMap| judge(status, headers);
        assert_eq!(judged(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new()), None);
        let found = judged(StatusCode::SERVICE_UNAVAILABLE, &headers("5"));
        assert_eq!(found, Some(Verdict::Rejected));
    }

    #[test]
    fn all_but_ok_is_a_failure() {
        assert!(!tells_of_failure(&HeaderMap::new()));
        assert!(!tells_of_failure(&headers("0")));
        assert!(["1", "14", "what"].into_iter().all(|code| tells_of_failure(&headers(code))));
    }
}
