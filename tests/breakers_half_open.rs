//! Probes: no more than are permitted, and none that is lost for good.

use std::future::Future;

use abate::{BreakerState, CircuitBreakerLayer, Error, ErrorKind, Policy};
use abate_tests::plan::{Answer as Planned, When};
use abate_tests::probe::Probe;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};

use super::{Tested, due, get, kind, layer, millis, reopening, seconds, up};

/// A call that was made and not polled yet.
async fn called<S>(mut service: S) -> Result<S::Future, Error>
where
    S: Service<Request<Full<Bytes>>, Error = Error>,
{
    Ok(service.ready().await?.call(get()))
}

// CB-03
#[tokio::test(start_paused = true)]
async fn of_five_hundred_clones_that_are_called_before_any_is_polled_three_pass() -> Tested {
    let breaker = layer();
    due(&breaker).await;
    let script = Script::of([Answer::status(200).after(seconds(1))]);
    let mut calls = Vec::new();
    for _ in 0..500 {
        calls.push(called(breaker.layer(script.clone()).clone()).await?);
    }
    assert_eq!(script.count(), 3);
    let mut refused = 0;
    for call in calls {
        match call.await {
            Ok(response) => assert_eq!(response.status(), 200),
            Err(error) => {
                assert_eq!((error.kind(), error.retry_at()), (ErrorKind::BreakerOpen, None));
                refused += 1;
            }
        }
    }
    assert_eq!((refused, script.count()), (497, 3));
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    Ok(())
}

// CB-03
#[tokio::test(start_paused = true)]
async fn of_five_hundred_tasks_that_wake_at_the_moment_of_the_reopening_three_pass() -> Tested {
    let breaker = layer();
    due(&breaker).await;
    let script = Script::of([Answer::status(200).after(seconds(1))]);
    let at = Instant::now() + millis(1);
    let calls = (0..500).map(|_| {
        let service = breaker.layer(script.clone());
        tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            service.oneshot(get()).await
        })
    });
    let mut passed = 0;
    for call in calls.collect::<Vec<_>>() {
        passed += usize::from(call.await?.is_ok());
    }
    assert_eq!((passed, script.count(), script.most_open()), (3, 3, 3));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn probes_that_are_never_polled_do_not_hold_it_half_open() -> Tested {
    let breaker = layer();
    due(&breaker).await;
    let mut never_polled = Vec::new();
    for _ in 0..3 {
        never_polled.push(called(breaker.layer(up())).await?);
    }
    assert_eq!(kind(&breaker.layer(up()).oneshot(get()).await), Some(ErrorKind::BreakerOpen));
    assert_eq!(breaker.handle().state(), BreakerState::HalfOpen);
    // Their leases end a second after the attempt timeout, as failures; then it is open.
    sleep(seconds(11)).await;
    reopening(&breaker).await;
    for _ in 0..3 {
        assert_eq!(breaker.layer(up()).oneshot(get()).await?.status(), 200);
    }
    assert_eq!(breaker.handle().state(), BreakerState::Closed);
    let moved = breaker.handle().transitions();
    drop(never_polled);
    assert_eq!(breaker.handle().transitions(), moved, "and when they go it is all the same");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn probes_that_are_dropped_unpolled_are_free_at_once() -> Tested {
    let breaker = layer();
    due(&breaker).await;
    for _ in 0..100 {
        drop(called(breaker.layer(up())).await?);
    }
    assert_eq!(breaker.layer(up()).oneshot(get()).await?.status(), 200);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_a_second_longer_than_the_attempt_timeout() -> Tested {
    let policy = Policy::builder().with_attempt_timeout(seconds(3)).build()?;
    let breaker = CircuitBreakerLayer::new(policy).with_seed(1);
    due(&breaker).await;
    let hang = breaker.layer(Script::of([Answer::hang()]));
    let calls = [(); 3].map(|()| tokio::spawn(hang.clone().oneshot(get())));
    sleep(millis(3_900)).await;
    let error = breaker.layer(up()).oneshot(get()).await.unwrap_err();
    assert_eq!((breaker.handle().state(), error.retry_at()), (BreakerState::HalfOpen, None));
    sleep(millis(200)).await;
    let error = breaker.layer(up()).oneshot(get()).await.unwrap_err();
    assert_eq!(breaker.handle().state(), BreakerState::Open);
    assert!(error.retry_at().is_some());
    calls.into_iter().for_each(|call| call.abort());
    Ok(())
}

/// Some number below `most`, the next of a row.
fn draw(row: &mut u64, most: u64) -> u64 {
    *row = row.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*row >> 33) % most
}

/// A hundred random acts on a breaker: calls that are polled or not, dropped, late, good or bad.
async fn wander(breaker: &CircuitBreakerLayer, row: &mut u64) -> Tested {
    let probe = Probe::answering([]);
    let (service, handle) = (breaker.layer(probe.clone()), probe.handle());
    let mut calls = Vec::new();
    for _ in 0..100 {
        match draw(row, 6) {
            0 | 1 => {
                let code = [200, 404, 429, 503, 500][draw(row, 5) as usize];
                let when = [When::NOW, When::After(millis(draw(row, 20_000))), When::Never];
                let answer = Planned::status(code).when(when[draw(row, 3) as usize]);
                handle.answer([answer]);
                calls.push(task::spawn(called(service.clone()).await?));
            }
            2 | 3 if !calls.is_empty() => {
                let n = draw(row, calls.len() as u64) as usize;
                if calls[n].poll().is_ready() {
                    drop(calls.swap_remove(n));
                }
            }
            4 if !calls.is_empty() => {
                drop(calls.swap_remove(draw(row, calls.len() as u64) as usize));
            }
            _ => advance(millis(draw(row, 3_000))).await,
        }
        assert!(
            breaker.handle().state() != BreakerState::HalfOpen || handle.held().1 <= calls.len()
        );
    }
    // Some are kept, and never polled again.
    std::mem::forget(calls.split_off(calls.len() / 2));
    Ok(())
}

// CB-01, CB-07
#[tokio::test(start_paused = true)]
async fn whatever_became_of_its_calls_it_closes_again_once_the_dependency_is_well() -> Tested {
    let mut row = 1;
    for round in 0..1_000 {
        let breaker = layer();
        if round % 2 == 0 {
            due(&breaker).await;
        }
        wander(&breaker, &mut row).await?;
        let service = breaker.layer(up());
        let start = Instant::now();
        let mut in_a_row = 0;
        while in_a_row < 20 {
            in_a_row = if service.clone().oneshot(get()).await.is_ok() { in_a_row + 1 } else { 0 };
            advance(millis(200)).await;
            assert!(start.elapsed() < seconds(60), "round {round}: {breaker:?}");
        }
        assert_eq!(breaker.handle().state(), BreakerState::Closed, "round {round}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_refused_future_that_is_kept_holds_nothing() -> Tested {
    let breaker = layer();
    due(&breaker).await;
    let hang = breaker.layer(Script::of([Answer::hang()]));
    let mut probes = [(); 3].map(|()| task::spawn(hang.clone().oneshot(get())));
    for probe in &mut probes {
        assert_pending!(probe.poll());
    }
    let mut kept = Vec::new();
    for _ in 0..10 {
        let mut refused = Box::pin(called(breaker.layer(up())).await?);
        let result = std::future::poll_fn(|cx| refused.as_mut().poll(cx)).await;
        assert_eq!(kind(&result), Some(ErrorKind::BreakerOpen));
        kept.push(refused);
    }
    drop(probes);
    assert_eq!(breaker.layer(up()).oneshot(get()).await?.status(), 200);
    drop(kept);
    Ok(())
}
