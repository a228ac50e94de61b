//! A breaker in the hands of an operator.

use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Policy, Report, RetryLayer, Stack};
use abate::{Scope, StopReason};
use abate_tests::events::{Event, Events};
use abate_tests::script::{Answer, Script};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};
use tracing::Level;

use super::{Tested, down, fail, get, kind, layer, millis, seconds, to, up};

/// Message, and from where to where.
fn told(event: &Event) -> (&str, &str, &str) {
    let field = |name| event.fields.get(name).map_or("", String::as_str);
    (&event.message, field("from"), field("to"))
}

const MOVED: &str = "circuit breaker moved";

#[tokio::test(start_paused = true)]
async fn forced_open_it_refuses_all_until_it_is_told_otherwise() -> Tested {
    let breaker = layer();
    let events = Events::listen();
    breaker.handle().force_open();
    let event = events.take();
    assert_eq!(event.iter().map(told).collect::<Vec<_>>(), [(MOVED, "closed", "forced open")]);
    assert_eq!(event[0].level, Level::INFO);
    let script = up();
    let service = breaker.layer(script.clone());
    for _ in 0..10 {
        let error = service.clone().oneshot(get()).await.unwrap_err();
        assert_eq!((error.kind(), error.retry_at()), (ErrorKind::BreakerOpen, None));
        sleep(seconds(3_600)).await;
    }
    assert_eq!((script.count(), breaker.handle().transitions()), (0, 1));
    assert_eq!(breaker.handle().state(), BreakerState::ForcedOpen);
    let told_of_refusals = events.messages();
    assert_eq!(told_of_refusals, ["refused: breaker"; 10]);
    breaker.handle().reset();
    assert_eq!(service.oneshot(get()).await?.status(), 200);
    let event = events.take();
    assert_eq!(event.iter().map(told).collect::<Vec<_>>(), [(MOVED, "forced open", "closed")]);
    Ok(())
}

// CB-10
#[tokio::test(start_paused = true)]
async fn a_retry_above_a_forced_open_breaker_ends_the_call_and_pays_nothing() -> Tested {
    let breaker = layer();
    breaker.handle().force_open();
    let retry = RetryLayer::new(Policy::default());
    let tokens = retry.budget().map(|budget| budget.tokens());
    let script = up();
    let start = Instant::now();
    let service = retry.layer(breaker.layer(script.clone()));
    let error = service.oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::BreakerOpen, 0));
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::Refused));
    assert_eq!((script.count(), start.elapsed()), (0, millis(0)));
    assert_eq!(retry.budget().map(|budget| budget.tokens()), tokens);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn disabled_it_lets_all_pass_and_records_nothing() -> Tested {
    let breaker = layer();
    fail(&breaker, "a.test").await;
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    breaker.handle().disable();
    let moved = breaker.handle().transitions();
    let script = down();
    let service = breaker.layer(script.clone());
    let events = Events::listen();
    for _ in 0..1_000 {
        assert_eq!(service.clone().oneshot(get()).await?.status(), 503);
        sleep(millis(10)).await;
    }
    assert_eq!((script.count(), events.take().len()), (1_000, 0));
    assert_eq!(breaker.handle().state(), BreakerState::Disabled);
    breaker.handle().reset();
    service.oneshot(get()).await?;
    assert_eq!(breaker.handle().state(), BreakerState::Closed, "it knows of one failure");
    assert_eq!(breaker.handle().transitions(), moved + 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn observing_it_refuses_nothing_and_tells_when_it_would_have_opened() -> Tested {
    let breaker = layer();
    breaker.handle().observe_only();
    let events = Events::listen();
    let script = down();
    let service = breaker.layer(script.clone());
    for _ in 0..100 {
        assert_eq!(service.clone().oneshot(get()).await?.status(), 503);
        sleep(millis(100)).await;
    }
    assert_eq!((script.count(), breaker.handle().state()), (100, BreakerState::ObserveOnly));
    let event = events.take();
    assert!((2..=5).contains(&event.len()), "every two seconds: {event:?}");
    for event in event {
        assert_eq!(event.level, Level::WARN);
        let expected = ("circuit breaker would have opened", "observe only", "observe only");
        assert_eq!(told(&event), expected);
        assert_eq!(event.fields.get("open_ms").map(String::as_str), Some("2000.0"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_healthy_dependency_is_observed_in_silence() -> Tested {
    let breaker = layer();
    breaker.handle().observe_only();
    let events = Events::listen();
    let service =
        breaker.layer(Script::by(|n| Answer::status([200, 503][usize::from(n % 5 == 0)])));
    for _ in 0..500 {
        service.clone().oneshot(get()).await?;
        sleep(millis(10)).await;
    }
    assert_eq!(events.take().len(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reset_closes_an_open_one_which_knows_nothing_any_more() -> Tested {
    let breaker = layer();
    fail(&breaker, "a.test").await;
    breaker.handle().reset();
    let (good, bad) = (breaker.layer(up()), breaker.layer(down()));
    for _ in 0..100 {
        assert_eq!(good.clone().oneshot(get()).await?.status(), 200, "no slow start either");
    }
    breaker.handle().reset();
    for _ in 0..9 {
        bad.clone().oneshot(get()).await?;
        sleep(millis(300)).await;
    }
    breaker.handle().reset();
    bad.clone().oneshot(get()).await?;
    assert_eq!(breaker.handle().state(), BreakerState::Closed, "nine before, one after");
    Ok(())
}

// CB-07
#[tokio::test(start_paused = true)]
async fn what_was_under_way_when_a_handle_moved_it_decides_nothing() -> Tested {
    let breaker = layer();
    let slow = breaker.layer(Script::of([Answer::status(503).after(seconds(5))]));
    let calls: Vec<_> = (0..100).map(|_| tokio::spawn(slow.clone().oneshot(get()))).collect();
    sleep(seconds(3)).await;
    breaker.handle().force_open();
    breaker.handle().reset();
    for call in calls {
        assert_eq!(call.await??.status(), 503);
    }
    assert_eq!(
        (breaker.handle().state(), breaker.handle().transitions()),
        (BreakerState::Closed, 2)
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_handle_is_that_of_every_service_and_of_every_clone_of_the_layer() -> Tested {
    let breaker = layer();
    let service = breaker.layer(up());
    let services = [breaker.clone().layer(up()), service.clone(), service];
    breaker.clone().handle().force_open();
    for service in services {
        assert_eq!(kind(&service.oneshot(get()).await), Some(ErrorKind::BreakerOpen));
    }
    assert!(breaker.handle().keys().is_empty(), "all share one");
    assert!(breaker.handle().key("a.test").is_none());
    assert!(format!("{:?}", breaker.handle()).contains("ForcedOpen"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_stack_is_run_by_hand_too() -> Tested {
    let stack = Stack::new(Policy::default());
    let script = Script::of([Answer::status(503).header("retry-after", "9")]);
    let service = stack.layer(script.clone());
    stack.breaker().force_open();
    assert_eq!(kind(&service.clone().oneshot(get()).await), Some(ErrorKind::BreakerOpen));
    stack.breaker().disable();
    assert_eq!(kind(&service.oneshot(get()).await), None);
    assert!(script.count() > 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_keyed_ones_a_handle_moves_all_and_those_to_come() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_scope(Scope::PerAuthority);
    let service = breaker.layer(up());
    service.clone().oneshot(to("a.test")).await?;
    breaker.handle().force_open();
    for host in ["a.test", "new.test"] {
        let result = service.clone().oneshot(to(host)).await;
        assert_eq!(kind(&result), Some(ErrorKind::BreakerOpen), "{host}");
    }
    breaker.handle().reset();
    for host in ["a.test", "new.test", "newer.test"] {
        service.clone().oneshot(to(host)).await?;
    }
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_handle_of_one_key_moves_that_one_alone() -> Tested {
    let breaker = CircuitBreakerLayer::new(Policy::default()).with_scope(Scope::PerAuthority);
    let service = breaker.layer(up());
    service.clone().oneshot(to("a.test")).await?;
    service.clone().oneshot(to("b.test")).await?;
    let one = breaker.handle().key("a.test").ok_or("it was called")?;
    one.force_open();
    assert_eq!((one.state(), one.transitions()), (BreakerState::ForcedOpen, 1));
    let refused = service.clone().oneshot(to("a.test")).await;
    assert_eq!(kind(&refused), Some(ErrorKind::BreakerOpen));
    assert_eq!(service.clone().oneshot(to("b.test")).await?.status(), 200);
    assert_eq!(breaker.handle().state(), BreakerState::ForcedOpen, "the least that passes");
    assert_eq!(breaker.handle().transitions(), 1);
    one.reset();
    assert_eq!(service.oneshot(to("a.test")).await?.status(), 200);
    Ok(())
}
