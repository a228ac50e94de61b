//! Concurrency limits: how long a call counts, and limits that change while calls are under way.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use abate::{ConcurrencyLimitLayer, ErrorKind, Hold, Policy, Stack};
use abate_tests::play::Beat;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, Layer, ServiceExt, service_fn};

type Tested = Result<(), BoxError>;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A head at once, and a body of a second.
fn second() -> Script {
    let body = [Beat::data("one"), Beat::Pause(seconds(1)), Beat::data("two")];
    Script::of([Answer::status(200).body(body)])
}

// TC-06
#[tokio::test(start_paused = true)]
async fn a_call_counts_to_the_end_of_its_body_or_to_its_head() -> Tested {
    for (hold, in_use, third_at) in [(Hold::Body, 2, 1_000), (Hold::Head, 0, 0)] {
        let script = second();
        let limit = ConcurrencyLimitLayer::new(2)?.with_hold(hold).with_wait(seconds(60));
        let service = limit.layer(script.clone());
        let calls = (0..3).map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                let body = service.oneshot(get()).await?.into_body();
                Ok::<_, BoxError>(body.collect().await?.to_bytes())
            })
        });
        let calls: Vec<_> = calls.collect();
        for _ in 0..5 {
            yield_now().await;
        }
        assert_eq!(limit.handle().in_use(), in_use, "{hold:?}");
        for call in calls {
            assert_eq!(call.await??, "onetwo");
        }
        let at: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
        assert_eq!(at[2], millis(third_at), "{hold:?}");
        assert_eq!(limit.handle().in_use(), 0);
    }
    Ok(())
}

// TC-06
#[tokio::test(start_paused = true)]
async fn held_to_the_head_the_head_is_waited_for() -> Tested {
    let script = Script::of([Answer::status(200).after(seconds(1)).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.with_hold(Hold::Head).with_wait(seconds(60));
    let service = limit.layer(script.clone());
    let responses = join_all((0..3).map(|_| service.clone().oneshot(get()))).await;
    assert!(responses.iter().all(Result::is_ok));
    let at: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
    assert_eq!(at, [seconds(0), seconds(1), seconds(2)]);
    assert_eq!((limit.handle().in_use(), script.open()), (0, 3), "streams that last");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn held_to_the_head_an_error_and_a_caller_who_gives_up_free_it_as_well() -> Tested {
    let answers = [Answer::fail(std::io::ErrorKind::ConnectionReset), Answer::hang()];
    let limit = ConcurrencyLimitLayer::new(1)?.with_hold(Hold::Head);
    let service = limit.layer(Script::of(answers));
    assert!(service.clone().oneshot(get()).await.is_err());
    assert_eq!(limit.handle().in_use(), 0);
    assert!(timeout(millis(1), service.oneshot(get())).await.is_err());
    assert_eq!(limit.handle().in_use(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stack_holds_as_it_is_told() -> Tested {
    let policy = Policy::builder().with_concurrency(1).build()?;
    for (hold, in_use) in [(Hold::Body, 1), (Hold::Head, 0)] {
        let stack = Stack::new(&policy).with_hold(hold);
        let response = stack.layer(second()).oneshot(get()).await?;
        assert_eq!(stack.limit().in_use(), in_use);
        assert_eq!(response.into_body().collect().await?.to_bytes(), "onetwo");
    }
    assert_eq!(Hold::default(), Hold::Body);
    Ok(())
}

// TC-07
#[tokio::test(start_paused = true)]
async fn fewer_than_are_in_flight_let_none_in_until_enough_have_ended() -> Tested {
    let script = Script::of([Answer::status(200).after(seconds(1))]);
    let limit = ConcurrencyLimitLayer::new(10)?.with_wait(seconds(60));
    let (service, handle) = (limit.layer(script.clone()), limit.handle());
    let call = |after: u64| {
        let service = service.clone();
        tokio::spawn(async move {
            sleep(millis(after)).await;
            service.oneshot(get()).await
        })
    };
    for _ in 0..10 {
        let (start, before) = (script.elapsed(), script.count());
        let since = |nth: usize| script.arrived()[before + nth].at - start;
        handle.set_max(10)?;
        let mut calls: Vec<_> = (0..8).map(|n| call(n * 100)).collect();
        sleep(millis(800)).await;
        handle.set_max(5)?;
        assert_eq!((handle.in_use(), handle.max()), (8, Some(5)), "those in flight go on");
        calls.extend((0..2).map(|_| call(0)));
        for call in calls {
            assert_eq!(call.await??.status(), 200);
        }
        // The fourth to end, at 1.3 s, leaves four.
        assert_eq!([since(8), since(9)], [millis(1_300), millis(1_400)]);
        handle.set_max(20)?;
        let all: Vec<_> = (0..20).map(|_| call(0)).collect();
        sleep(millis(1)).await;
        assert_eq!(handle.in_use(), 20);
        for call in all {
            call.await??;
        }
        assert_eq!(handle.in_use(), 0);
    }
    Ok(())
}

// TC-07
#[tokio::test(start_paused = true)]
async fn a_limit_that_changes_a_thousand_times_under_load_is_kept_and_loses_nothing() -> Tested {
    let limit = ConcurrencyLimitLayer::new(10)?.with_wait(millis(50));
    let handle = limit.handle();
    let (live, late) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let row = Cell::new(1_u64);
    let draw = |most: u64| {
        row.set(row.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        (row.get() >> 33) % most
    };
    let below = service_fn({
        let (handle, live, late) = (handle.clone(), Arc::clone(&live), Arc::clone(&late));
        move |request: Request<Full<Bytes>>| {
            // Relaxed, here and below: all is on one thread.
            let now = live.fetch_add(1, Relaxed) + 1;
            if handle.max().is_some_and(|max| now > max) {
                late.fetch_add(1, Relaxed);
            }
            let live = Live(Arc::clone(&live));
            async move {
                let took = request.extensions().get().copied().unwrap_or(Duration::ZERO);
                sleep(took).await;
                drop(live);
                Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
            }
        }
    });
    let service = limit.layer(below);
    let (mut calls, mut refused) = (Vec::new(), 0);
    for round in 0..1_000 {
        handle.set_max(1 + draw(20) as usize)?;
        for _ in 0..3 {
            let mut request = get();
            request.extensions_mut().insert(millis(1 + draw(20)));
            let call = service.clone().oneshot(request);
            calls.push(tokio::spawn(timeout(millis(5 + draw(200)), call)));
        }
        sleep(millis(1 + draw(3))).await;
        assert!(handle.in_use() >= live.load(Relaxed), "round {round}");
    }
    for call in calls {
        if let Ok(Err(error)) = call.await? {
            assert_eq!(error.kind(), ErrorKind::LimitReached);
            refused += 1;
        }
    }
    assert_eq!(late.load(Relaxed), 0, "let in above the limit of the moment");
    assert!(refused > 0, "there was a queue");
    assert_eq!(handle.in_use(), 0);
    handle.set_max(20)?;
    let start = Instant::now();
    let last = join_all((0..21).map(|_| {
        let mut request = get();
        request.extensions_mut().insert(millis(10));
        service.clone().oneshot(request)
    }));
    assert!(last.await.iter().all(Result::is_ok));
    assert_eq!(start.elapsed(), millis(20), "twenty at once, and one more");
    Ok(())
}

struct Live(Arc<AtomicU32>);

impl Drop for Live {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.fetch_sub(1, Relaxed);
    }
}

// TC-07
#[tokio::test(start_paused = true)]
async fn those_who_wait_go_as_soon_as_the_limit_is_raised() -> Tested {
    let script = Script::of([Answer::hang()]);
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(60));
    let service = limit.layer(script.clone());
    let calls: Vec<_> = (0..6).map(|_| tokio::spawn(service.clone().oneshot(get()))).collect();
    sleep(millis(10)).await;
    assert_eq!(script.count(), 1);
    limit.handle().set_max(4)?;
    sleep(millis(1)).await;
    assert_eq!((script.count(), limit.handle().in_use()), (4, 4));
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    sleep(millis(1)).await;
    assert_eq!(limit.handle().in_use(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_cannot_be_is_refused_and_changes_nothing() -> Tested {
    let limit = ConcurrencyLimitLayer::new(3)?;
    for max in [0, usize::MAX] {
        assert!(limit.handle().set_max(max).is_err(), "{max}");
        assert_eq!(limit.handle().max(), Some(3));
    }
    let none = ConcurrencyLimitLayer::from_policy(Policy::default());
    none.handle().set_max(3)?;
    assert_eq!(none.handle().max(), None, "a layer without a limit stays without one");
    Ok(())
}
