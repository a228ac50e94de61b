//! What the retry layer does, seen from a caller and from the service below.

mod retrying_bodies;
mod retrying_budgets;
mod retrying_drains;
mod retrying_hints;
mod retrying_nested;
mod retrying_refusals;
mod retrying_reports;
mod retrying_requests;
mod retrying_streams;
mod retrying_times;
mod retrying_told;

use std::io;
use std::time::Duration;

use abate::{BreakerState, CircuitBreakerLayer, Idempotent, Jitter};
use abate::{Policy, PolicyBuilder, PolicyError, Report, RetryLayer, StopReason};
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use tokio::time::sleep;
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

/// At most `attempts`, which nobody pays for, with the same jitter in every run.
fn retries(attempts: u32) -> Result<RetryLayer, PolicyError> {
    unpaid(Policy::builder().with_attempts(attempts))
}

/// Waits of exactly `base` before the first retry, and of twice as much before each next.
fn waits(base: Duration) -> PolicyBuilder {
    Policy::builder().with_base(base).with_jitter(Jitter::None)
}

fn unpaid(policy: PolicyBuilder) -> Result<RetryLayer, PolicyError> {
    Ok(RetryLayer::new(policy.build()?).without_budget().with_seed(1))
}

fn request(method: Method) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from_static("http://a.test/one");
    request
}

fn get() -> Request<Full<Bytes>> {
    request(Method::GET)
}

fn report<B>(response: &Response<B>) -> Option<&Report> {
    response.extensions().get()
}

fn stop<B>(response: &Response<B>) -> Option<StopReason> {
    report(response)?.stop_reason()
}

async fn read<B: Body>(response: Response<B>) -> Result<Bytes, B::Error> {
    Ok(response.into_body().collect().await?.to_bytes())
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// BO-07
#[tokio::test(start_paused = true)]
async fn attempts_include_the_first_and_are_exactly_as_many_as_the_policy_says() -> Tested {
    for attempts in [1, 3, 4] {
        let script = Script::of([Answer::status(503)]);
        let response = retries(attempts)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!(response.status(), 503);
        assert_eq!(script.count(), attempts as usize);
        assert_eq!(stop(&response), Some(StopReason::Attempts));

        let script = Script::of([Answer::fail(io::ErrorKind::ConnectionReset)]);
        let error = retries(attempts)?.layer(script.clone()).oneshot(get()).await.unwrap_err();
        assert_eq!((script.count(), error.attempts()), (attempts as usize, attempts));
    }
    assert!(retries(0).is_err(), "no attempts at all make no call");
    Ok(())
}

// BO-08
#[tokio::test(start_paused = true)]
async fn every_call_counts_its_own_attempts_however_many_share_a_service() -> Tested {
    let rich = Policy::builder().with_budget_floor(1e6).build()?;
    for layer in [retries(3)?, RetryLayer::new(rich)] {
        let script =
            Script::per_path([Answer::status(503), Answer::status(500), Answer::status(200)]);
        let service = layer.layer(script.clone());
        let call = |n: usize| {
            let mut request = get();
            *request.uri_mut() = format!("http://a.test/{n}").parse().unwrap();
            service.clone().oneshot(request)
        };
        for response in join_all((0..100).map(call)).await {
            let response = response?;
            assert_eq!(response.status(), 200);
            assert_eq!(report(&response).map(Report::attempts), Some(3));
        }
        assert_eq!(script.count(), 300);
        assert_eq!(call(100).await?.status(), 200, "and one more, later");
        assert_eq!(script.count(), 303);
    }
    Ok(())
}

// CL-01
#[tokio::test(start_paused = true)]
async fn what_waiting_may_change_is_retried() -> Tested {
    for code in [408, 425, 429, 500, 502, 503, 504] {
        let script = Script::of([Answer::status(code), Answer::status(200)]);
        let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!((response.status().as_u16(), script.count()), (200, 2), "{code}");
    }
    Ok(())
}

// CL-01, CL-08
#[tokio::test(start_paused = true)]
async fn what_waiting_does_not_change_is_sent_once_costs_nothing_and_is_no_verdict() -> Tested {
    let rejected = [400, 401, 403, 404, 409, 410, 417, 422];
    let permanent = [501, 505, 506, 507, 508, 510, 511, 520, 527, 529, 599];
    for code in rejected.into_iter().chain(permanent) {
        let script = Script::of([Answer::status(code)]);
        let policy = Policy::default();
        let (layer, breaker) =
            (RetryLayer::new(policy.clone()), CircuitBreakerLayer::new(&policy).with_seed(1));
        let service = layer.layer(breaker.layer(script.clone()));
        for call in 1..=40 {
            let response = service.clone().oneshot(get()).await?;
            assert_eq!((response.status().as_u16(), script.count()), (code, call));
            sleep(millis(100)).await;
        }
        let tokens = layer.budget().map_or(0.0, |budget| budget.tokens());
        assert!(tokens > 1.999, "{code}: {tokens} tokens are left of 2");
        assert_eq!(breaker.handle().state(), BreakerState::Closed, "{code}");
    }
    Ok(())
}

/// The attempts made for `request` when it meets `trouble` once, and why there were no more.
async fn after(
    request: Request<Full<Bytes>>,
    trouble: Answer,
) -> Result<(usize, Option<StopReason>), PolicyError> {
    let script = Script::of([trouble, Answer::status(200)]);
    let result = retries(3)?.layer(script.clone()).oneshot(request).await;
    let reason = match &result {
        Ok(response) => stop(response),
        Err(error) => error.report().and_then(Report::stop_reason),
    };
    Ok((script.count(), reason))
}

// ID-01
#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_repeated_only_when_it_was_not_carried_out() -> Tested {
    for method in [Method::POST, Method::PATCH] {
        for (trouble, attempts) in [
            (Answer::fail(io::ErrorKind::ConnectionReset), 1),
            (Answer::status(502), 1),
            (Answer::status(503), 1),
            (Answer::status(429), 2),
            (Answer::fail(io::ErrorKind::ConnectionRefused), 2),
        ] {
            let reason = (attempts == 1).then_some(StopReason::NotIdempotent);
            let outcome = after(request(method.clone()), trouble.clone()).await?;
            assert_eq!(outcome, (attempts, reason), "{method} after {trouble:?}");
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn idempotent_methods_are_repeated_after_all_that_may_pass() -> Tested {
    let query = Method::from_bytes(b"QUERY")?;
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, query];
    for method in safe.into_iter().chain([Method::PUT, Method::DELETE]) {
        for trouble in [
            Answer::status(503),
            Answer::fail(io::ErrorKind::ConnectionReset),
            Answer::fail(io::ErrorKind::ConnectionRefused),
        ] {
            assert_eq!(after(request(method.clone()), trouble).await?, (2, None), "{method}");
        }
    }
    Ok(())
}

// ID-07
#[tokio::test(start_paused = true)]
async fn the_callers_mark_says_what_the_method_does_not() -> Tested {
    let marked = |method, mark| {
        let mut request = request(method);
        request.extensions_mut().insert(Idempotent(mark));
        request
    };
    let once = (1, Some(StopReason::NotIdempotent));
    assert_eq!(after(marked(Method::POST, true), Answer::status(503)).await?, (2, None));
    assert_eq!(after(request(Method::POST), Answer::status(503)).await?, once);
    assert_eq!(after(marked(Method::GET, false), Answer::status(503)).await?, once);
    assert_eq!(after(marked(Method::GET, false), Answer::status(429)).await?, (2, None));
    Ok(())
}

// ID-03
#[tokio::test(start_paused = true)]
async fn a_key_makes_a_post_repeatable_and_is_the_same_on_each_attempt() -> Tested {
    let script = Script::of([Answer::status(502), Answer::status(503), Answer::status(200)]);
    let mut request = request(Method::POST);
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("8e03978e"));
    let response = retries(3)?.layer(script.clone()).oneshot(request).await?;
    assert_eq!((response.status().as_u16(), script.count()), (200, 3));
    for arrived in script.arrived() {
        let keys: Vec<_> = arrived.headers.get_all("idempotency-key").iter().collect();
        assert_eq!(keys, ["8e03978e"]);
    }
    Ok(())
}
