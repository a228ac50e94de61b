//! The circuit breaker: how it opens, and how it comes back.

use abate::{BreakerState, CircuitBreakerLayer, ErrorKind, Policy};
use abate_tests::script::{Answer, Script};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, Layer, Service, ServiceExt};

use super::{Tested, get, kind, millis, seconds};

fn layer() -> CircuitBreakerLayer {
    CircuitBreakerLayer::new(Policy::default()).with_seed(1)
}

/// Fails ten times a second until the breaker opens; the time that it took.
async fn open(breaker: &CircuitBreakerLayer) -> Result<std::time::Duration, BoxError> {
    let service = breaker.layer(Script::of([Answer::status(503)]));
    let start = Instant::now();
    while breaker.handle().state() == BreakerState::Closed {
        service.clone().oneshot(get()).await?;
        if breaker.handle().state() == BreakerState::Closed {
            sleep(millis(100)).await;
        }
    }
    Ok(start.elapsed())
}

/// Sleeps until an open breaker lets a call through.
async fn reopening(breaker: &CircuitBreakerLayer) {
    let service = breaker.layer(Script::of([Answer::status(200)]));
    if let Err(error) = service.oneshot(get()).await {
        sleep_until(error.retry_at().map_or_else(Instant::now, Into::into)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_seconds_of_failures_open_it_and_a_refusal_says_for_how_long() -> Tested {
    let breaker = layer();
    assert_eq!(open(&breaker).await?, seconds(2));
    assert_eq!((breaker.handle().state(), breaker.handle().transitions()), (BreakerState::Open, 1));
    let script = Script::of([Answer::status(200)]);
    let error = breaker.layer(script.clone()).oneshot(get()).await.unwrap_err();
    assert_eq!((error.kind(), script.count()), (ErrorKind::BreakerOpen, 0));
    let now = Instant::now().into_std();
    let wait = error.retry_at().unwrap() - now;
    assert!((seconds(1)..=seconds(2)).contains(&wait), "{wait:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_fifth_of_failures_opens_nothing() -> Tested {
    let breaker = layer();
    let script = Script::by(|n| Answer::status(if n % 5 == 0 { 503 } else { 200 }));
    let service = breaker.layer(script);
    for _ in 0..1_000 {
        service.clone().oneshot(get()).await?;
        sleep(millis(10)).await;
    }
    assert_eq!(breaker.handle().transitions(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn it_closes_once_its_probes_succeed() -> Tested {
    let breaker = layer();
    open(&breaker).await?;
    reopening(&breaker).await;
    let script = Script::of([Answer::status(200)]);
    let service = breaker.layer(script.clone());
    assert_eq!(breaker.handle().state(), BreakerState::Open, "time alone moves nothing");
    for state in [BreakerState::HalfOpen, BreakerState::Closed, BreakerState::Closed] {
        service.clone().oneshot(get()).await?;
        assert_eq!(breaker.handle().state(), state);
    }
    assert_eq!((script.count(), breaker.handle().transitions()), (3, 3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn failing_probes_open_it_again() -> Tested {
    let breaker = layer();
    open(&breaker).await?;
    reopening(&breaker).await;
    let script = Script::of([Answer::status(503)]);
    let service = breaker.layer(script.clone());
    service.clone().oneshot(get()).await?;
    service.clone().oneshot(get()).await?;
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    assert_eq!(kind(&service.oneshot(get()).await), Some(ErrorKind::BreakerOpen));
    assert_eq!(script.count(), 2);
    Ok(())
}

// CB-03
#[tokio::test(start_paused = true)]
async fn no_more_than_its_probes_pass_while_they_are_under_way() -> Tested {
    for probes in [1, 3] {
        let policy = Policy::builder().with_breaker_probes(probes).build()?;
        let breaker = CircuitBreakerLayer::new(&policy).with_seed(1);
        open(&breaker).await?;
        reopening(&breaker).await;
        let script = Script::of([Answer::status(200).after(seconds(1))]);
        let service = breaker.layer(script.clone());
        let start = Instant::now();
        let calls = (0..500).map(async |_| {
            let result = service.clone().oneshot(get()).await;
            result.map_err(|error| (error.kind(), error.retry_at(), start.elapsed()))
        });
        let results = join_all(calls).await;
        let refused: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!((refused.len(), script.count()), (500 - probes as usize, probes as usize));
        let at_once = (ErrorKind::BreakerOpen, None, millis(0));
        assert!(refused.iter().all(|it| *it == at_once), "it depends on the answers under way");
    }
    Ok(())
}

// CB-01
#[tokio::test(start_paused = true)]
async fn a_probe_that_proves_nothing_gives_its_place_back() -> Tested {
    let breaker = layer();
    open(&breaker).await?;
    reopening(&breaker).await;
    let script = Script::of([Answer::status(404), Answer::hang(), Answer::status(200)]);
    let service = breaker.layer(script.clone());
    service.clone().oneshot(get()).await?;
    let given_up = tokio::time::timeout(millis(10), service.clone().oneshot(get())).await;
    assert!(given_up.is_err());
    assert_eq!(breaker.handle().state(), BreakerState::HalfOpen);
    for _ in 0..2 {
        assert_eq!(service.clone().oneshot(get()).await?.status(), 200);
    }
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    Ok(())
}

// CB-07
#[tokio::test(start_paused = true)]
async fn what_comes_of_an_earlier_state_decides_nothing() -> Tested {
    let breaker = layer();
    let late = |code| breaker.layer(Script::of([Answer::status(code).after(seconds(5))]));
    let [success, failure] = [200, 503].map(|code| tokio::spawn(late(code).oneshot(get())));
    tokio::task::yield_now().await;
    open(&breaker).await?;
    reopening(&breaker).await;
    let probe = tokio::spawn(late(200).oneshot(get()));
    tokio::task::yield_now().await;
    assert_eq!(breaker.handle().state(), BreakerState::HalfOpen);
    let transitions = breaker.handle().transitions();
    drop((success.await?, failure.await?));
    assert_eq!(breaker.handle().transitions(), transitions);
    probe.await??;
    Ok(())
}

// CB-11
#[tokio::test(start_paused = true)]
async fn it_stays_open_from_the_failure_that_opened_it() -> Tested {
    let policy = Policy::builder()
        .with_total_timeout(seconds(60))
        .with_attempt_timeout(seconds(60))
        .with_breaker_open_for(seconds(30), seconds(30))
        .build()?;
    let breaker = CircuitBreakerLayer::new(&policy).with_seed(1);
    let slow = breaker.layer(Script::of([Answer::status(503).after(seconds(40))]));
    let calls = (0..30_u32).map(|n| {
        let slow = slow.clone();
        tokio::spawn(async move {
            sleep(millis(100) * n).await;
            slow.oneshot(get()).await
        })
    });
    let calls = join_all(calls.collect::<Vec<_>>());
    while breaker.handle().state() == BreakerState::Closed {
        sleep(millis(10)).await;
    }
    let opened = Instant::now();
    sleep(seconds(14)).await;
    let script = Script::of([Answer::status(200)]);
    assert!(breaker.layer(script.clone()).oneshot(get()).await.is_err());
    assert_eq!(script.count(), 0, "{:?} after it opened", opened.elapsed());
    calls.await;
    assert_eq!(breaker.handle().transitions(), 1, "opened once");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refusal_comes_from_the_call_and_not_from_readiness() -> Tested {
    let breaker = layer();
    open(&breaker).await?;
    let mut service = breaker.layer(Script::of([Answer::status(200)]));
    let ready =
        ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(&mut service);
    assert_eq!(kind(&ready.await?.call(get()).await), Some(ErrorKind::BreakerOpen));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn clones_share_a_breaker_and_other_layers_have_their_own() -> Tested {
    let (one, other) = (layer(), layer());
    open(&one.clone()).await?;
    assert_eq!(one.handle().state(), BreakerState::Open);
    assert_eq!(other.handle().state(), BreakerState::Closed);
    Ok(())
}
