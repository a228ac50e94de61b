//! Whatever once went wrong within a layer, and must not again.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, CircuitBreakerLayer, ErrorKind, Policy, RetryBudgetLayer, RetryLayer,
    Scope,
};
use abate_tests::events::Events;
use abate_tests::plan::{Answer as Planned, Readiness, When};
use abate_tests::play::Beat;
use abate_tests::probe::Probe;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use tokio::time::sleep;
use tower::{BoxError, Layer, ServiceExt};
use tracing::Level;

type Tested = Result<(), BoxError>;

fn down() -> Script {
    Script::of([Answer::status(503)])
}

fn up() -> Script {
    Script::of([Answer::status(200)])
}

fn attempt(number: u32) -> Request<Full<Bytes>> {
    let mut request = get();
    request.extensions_mut().insert(abate::Attempt::new(number));
    request
}

fn to(host: &str) -> Request<Full<Bytes>> {
    let mut request = get();
    *request.uri_mut() = Uri::try_from(format!("http://{host}/")).unwrap();
    request
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn warnings(events: &Events) -> usize {
    events.take().iter().filter(|event| event.level == Level::WARN).count()
}

/// Rich in tokens, at a pace of two retries a second and one at once.
async fn paced() -> Result<RetryBudgetLayer, BoxError> {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(2.0).build()?;
    let layer = RetryBudgetLayer::new(policy);
    for _ in 0..100 {
        layer.layer(up()).oneshot(get()).await?;
    }
    let _ = layer.budget().tokens();
    sleep(Duration::from_secs(8)).await;
    Ok(layer)
}

#[tokio::test(start_paused = true)]
async fn a_repeat_whose_service_fails_to_get_ready_gives_its_token_back() -> Tested {
    let layer = paced().await?;
    let probe = Probe::answering([Planned::status(503)]);
    let handle = probe.handle();
    let service = layer.layer(probe);
    for _ in 0..2 {
        service.clone().oneshot(attempt(2)).await?;
    }
    let before = layer.budget().tokens();
    handle.ready([Readiness::Comes(When::NOW), Readiness::Fails]);
    let error = service.oneshot(attempt(2)).await.unwrap_err();
    assert_eq!((error.kind(), handle.calls()), (ErrorKind::Client, 2));
    // Half a second has passed, with a floor of two a second.
    let left = before * (-0.05_f64).exp() + 1.0;
    let lost = left - layer.budget().tokens();
    assert!(lost.abs() < 0.1, "{lost} of {left}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn our_own_retry_above_is_known_by_first_attempts_too() -> Tested {
    let budget = RetryBudgetLayer::new(Policy::default());
    let events = Events::listen();
    let above = RetryLayer::new(Policy::default()).without_budget();
    for _ in 0..100 {
        let mut request = get();
        *request.method_mut() = Method::POST;
        above.layer(budget.layer(down())).oneshot(request).await?;
    }
    assert_eq!(warnings(&events), 0, "a POST is never repeated, and would be marked if it were");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn names_that_differ_in_case_alone_are_one_authority() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_scope(Scope::PerAuthority);
    breaker.layer(up()).oneshot(to("a.test")).await?;
    breaker.layer(up()).oneshot(to("A.Test")).await?;
    assert_eq!(breaker.handle().keys().len(), 1, "RFC 9110 section 4.2.3");
    Ok(())
}

// TO-04
#[tokio::test(start_paused = true)]
async fn a_body_that_never_pauses_is_ended_in_time_too() -> Tested {
    let attempt = AttemptTimeoutLayer::new(millis(2_000)).covering_body().layer(endless());
    let mut body = attempt.oneshot(get()).await?.into_body();
    for n in 0.. {
        match body.frame().await {
            Some(Ok(_)) => assert!(n < 30, "three seconds of a body of two"),
            Some(Err(error)) => {
                assert_eq!(error.kind(), ErrorKind::AttemptTimeout);
                break;
            }
            None => return Err("it has no end".into()),
        }
        sleep(millis(100)).await;
    }
    Ok(())
}

/// A body without end that is always ready, as a fast server's is.
fn endless() -> Script {
    let frame = Bytes::from_static(&[0; 1_024]);
    Script::of([Answer::status(200).body([Beat::Endless(frame)])])
}

#[tokio::test(start_paused = true)]
async fn breakers_of_several_keys_that_open_together_do_not_probe_together() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_scope(Scope::PerAuthority);
    let service = breaker.with_seed(1).layer(down());
    let mut back = Vec::new();
    for _ in 0..12 {
        for host in ["a.test", "b.test", "c.test"] {
            let call = service.clone().oneshot(to(host)).await;
            back.extend(call.err().and_then(|error| error.retry_at()));
        }
        sleep(millis(200)).await;
    }
    back.sort();
    back.dedup();
    assert_eq!(back.len(), 3, "each at a moment of its own");
    Ok(())
}
