//! What is told to `tracing`: nothing when all is well, else one event for each thing.

use std::io;

use abate::{CircuitBreakerLayer, Policy, RetryLayer, Stack};
use abate_tests::events::{Event, Events};
use abate_tests::script::{Answer, Script};
use http::Method;
use tokio::time::sleep;
use tower::{Layer, ServiceExt};
use tracing::Level;

use super::{Tested, get, millis, request, retries, seconds, unpaid, waits};

fn told(events: &Events) -> Vec<(Level, String)> {
    events.take().into_iter().map(|event| (event.level, event.message)).collect()
}

fn field<'a>(event: &'a Event, name: &str) -> &'a str {
    event.fields.get(name).map_or("", String::as_str)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_told_of_a_call_that_succeeds_at_once() -> Tested {
    let events = Events::listen();
    for code in [200, 204, 302, 404, 422] {
        let script = Script::of([Answer::status(code)]);
        retries(3)?.layer(script.clone()).oneshot(get()).await?;
        Stack::new(Policy::default()).layer(script).oneshot(get()).await?;
    }
    assert_eq!(told(&events), []);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_retry_is_told_with_its_reason_and_its_wait() -> Tested {
    let events = Events::listen();
    let script = Script::of([
        Answer::status(503).header("retry-after", "2"),
        Answer::fail(io::ErrorKind::ConnectionRefused),
        Answer::status(200),
    ]);
    unpaid(waits(millis(100)))?.layer(script).oneshot(get()).await?;
    let heard = events.take();
    assert_eq!(heard.len(), 2, "{heard:?}");
    for event in &heard {
        assert_eq!((event.level, &*event.message), (Level::DEBUG, "retrying"));
    }
    let [first, second] = &heard[..] else { unreachable!() };
    assert_eq!((field(first, "attempt"), field(first, "outcome")), ("1", "503"));
    assert_eq!((field(first, "why"), field(first, "source")), ("Server", "Hint"));
    assert!(field(first, "delay_ms").parse::<f64>()? >= 2_000.0);
    assert_eq!((field(second, "attempt"), field(second, "outcome")), ("2", "not sent"));
    assert_eq!((field(second, "why"), field(second, "source")), ("Unsent", "Backoff"));
    assert_eq!(field(second, "delay_ms").parse::<f64>()?, 200.0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_end_without_success_is_told_once_with_its_reason() -> Tested {
    for (request, attempts, reason, events_before) in
        [(get(), "3", "attempts", 2), (request(Method::POST), "1", "not_idempotent", 0)]
    {
        let events = Events::listen();
        retries(3)?.layer(Script::of([Answer::status(503)])).oneshot(request).await?;
        let heard = events.take();
        assert_eq!(heard.len(), events_before + 1, "{heard:?}");
        let last = heard.last().unwrap();
        assert_eq!((last.level, &*last.message), (Level::DEBUG, "stopped retrying"));
        assert_eq!((field(last, "attempts"), field(last, "reason")), (attempts, reason));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_transition_and_each_refusal_of_a_breaker_is_told_once() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_seed(1);
    let script = Script::by(|n| Answer::status(if n < 21 { 503 } else { 200 }));
    let service = breaker.layer(script.clone());
    let events = Events::listen();
    for _ in 0..21 {
        service.clone().oneshot(get()).await?;
        sleep(millis(100)).await;
    }
    let heard = events.take();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!((heard[0].level, &*heard[0].message), (Level::WARN, "circuit breaker opened"));
    assert_eq!((field(&heard[0], "from"), field(&heard[0], "to")), ("closed", "open"));
    let open_ms: f64 = field(&heard[0], "open_ms").parse()?;
    assert!((1_000.0..=2_000.0).contains(&open_ms), "{open_ms}");

    service.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(told(&events), [(Level::DEBUG, "refused: breaker".to_owned())]);

    sleep(seconds(2)).await;
    for _ in 0..3 {
        service.clone().oneshot(get()).await?;
    }
    let heard = events.take();
    let moves: Vec<_> =
        heard.iter().map(|it| (it.level, field(it, "from"), field(it, "to"))).collect();
    let expected = [(Level::INFO, "open", "half-open"), (Level::INFO, "half-open", "closed")];
    assert_eq!(moves, expected);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_empty_is_told_as_the_reason() -> Tested {
    let policy = Policy::builder().with_attempts(2).with_budget_floor(0.0).build()?;
    let service = RetryLayer::new(policy).layer(Script::of([Answer::status(503)]));
    service.clone().oneshot(get()).await?;
    let events = Events::listen();
    service.oneshot(get()).await?;
    let heard = events.take();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(field(&heard[0], "reason"), "budget");
    Ok(())
}
