//! The concurrency limit.

use std::io;

use abate::{ConcurrencyLimitLayer, DeadlineLayer, ErrorKind, Policy};
use abate_tests::events::Events;
use abate_tests::play::Beat;
use abate_tests::script::{Answer, Script};
use futures_util::future::{join, join_all};
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

use super::{Tested, get, get_within, kind, millis, seconds};

/// A body that takes a second.
fn second() -> Answer {
    Answer::status(200).body([Beat::data("one"), Beat::Pause(seconds(1)), Beat::data("two")])
}

#[tokio::test(start_paused = true)]
async fn never_more_than_the_limit_are_open_to_the_end_of_their_bodies() -> Tested {
    let script = Script::of([second().after(millis(300))]);
    let limit = ConcurrencyLimitLayer::new(3)?.with_wait(seconds(60));
    let service = limit.layer(script.clone());
    let calls = (0..20).map(async |_| {
        let response = service.clone().oneshot(get()).await?;
        assert!(limit.handle().in_use() <= 3);
        sleep(millis(100)).await;
        Ok::<_, BoxError>(response.into_body().collect().await?.to_bytes())
    });
    for data in join_all(calls).await {
        assert_eq!(data?, "onetwo");
    }
    assert_eq!((script.count(), script.most_open()), (20, 3));
    assert_eq!(script.elapsed(), millis(7 * 1_400), "and never fewer while there is work");
    assert_eq!((limit.handle().in_use(), limit.handle().max()), (0, Some(3)));
    Ok(())
}

// TC-06
#[tokio::test(start_paused = true)]
async fn the_next_one_waits_until_a_body_ends_or_is_dropped() -> Tested {
    let script = Script::of([second()]);
    let service = ConcurrencyLimitLayer::new(2)?.with_wait(seconds(60)).layer(script.clone());
    let (one, two) = (service.clone().oneshot(get()).await?, service.clone().oneshot(get()).await?);
    let read = async { one.into_body().collect().await.map(drop) };
    let (third, end) = join(service.clone().oneshot(get()), read).await;
    end?;
    assert_eq!(script.elapsed(), seconds(1), "when the first was read");
    let fourth = service.clone().oneshot(get());
    let (fourth, ()) = join(fourth, async {
        sleep(seconds(1)).await;
        drop(two);
    })
    .await;
    assert_eq!(script.elapsed(), seconds(2), "when the second was dropped, unread");
    assert!(timeout(seconds(30), service.oneshot(get())).await.is_err(), "nobody reads on");
    drop((third?, fourth?));
    assert_eq!(script.most_open(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_body_at_its_end_holds_nothing() -> Tested {
    let ended = Answer::status(204);
    let broken = Answer::status(200).body([Beat::Break]);
    let read = Answer::status(200).body([Beat::data("all")]);
    let trailers = Answer::status(200).body([Beat::data("a"), Beat::trailer("x-sum", "1")]);
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(millis(0));
    let service = limit.layer(Script::of([ended, broken, read, trailers]));
    let in_use = || limit.handle().in_use();

    let response = service.clone().oneshot(get()).await?;
    assert_eq!(in_use(), 0, "there was never anything to read");
    drop(response);
    let mut response = service.clone().oneshot(get()).await?;
    assert_eq!(in_use(), 1);
    assert!(response.frame().await.is_some_and(|frame| frame.is_err()));
    assert_eq!(in_use(), 0, "it broke off");
    let mut response = service.clone().oneshot(get()).await?;
    response.frame().await.transpose()?;
    assert_eq!(in_use(), 0, "the last frame was read, and the end not asked for");
    let mut response = service.clone().oneshot(get()).await?;
    response.frame().await.transpose()?;
    assert_eq!(in_use(), 1, "trailers are to come");
    response.frame().await.transpose()?;
    assert_eq!(in_use(), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_bounded_and_its_end_is_told() -> Tested {
    for (wait, limit) in [
        (seconds(1), ConcurrencyLimitLayer::new(1)?),
        (seconds(3), ConcurrencyLimitLayer::new(1)?.with_wait(seconds(3))),
        (millis(0), ConcurrencyLimitLayer::new(1)?.with_wait(millis(0))),
    ] {
        let script = Script::of([Answer::status(200).body([Beat::Hang])]);
        let service = limit.layer(script.clone());
        let held = service.clone().oneshot(get()).await?;
        let events = Events::listen();
        let result = service.clone().oneshot(get()).await;
        assert_eq!(kind(&result), Some(ErrorKind::LimitReached));
        assert_eq!((script.elapsed(), script.count()), (wait, 1));
        let told = events.take();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].fields.get("kind").map(String::as_str), Some("LimitReached"));
        drop(held);
        assert_eq!(service.oneshot(get()).await?.status(), 200, "free again");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_beyond_the_deadline_of_the_call() -> Tested {
    let script = Script::of([Answer::status(200).body([Beat::Hang])]);
    let limit = ConcurrencyLimitLayer::new(1)?.layer(script.clone());
    let held = limit.clone().oneshot(get()).await?;
    let own = limit.clone().oneshot(get_within(millis(300))).await;
    assert_eq!(kind(&own), Some(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), script.count()), (millis(300), 1));
    let from_above = DeadlineLayer::new(millis(300)).layer(limit).oneshot(get()).await;
    assert_eq!(kind(&from_above), Some(ErrorKind::Deadline));
    assert_eq!((script.elapsed(), script.count()), (millis(600), 1));
    drop(held);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn whoever_came_first_goes_first() -> Tested {
    let script = Script::of([Answer::status(200).after(millis(100))]);
    let service = ConcurrencyLimitLayer::new(1)?.with_wait(seconds(60)).layer(script.clone());
    let calls = (0..10).map(|n| {
        let mut request = get();
        *request.uri_mut() = format!("http://a.test/{n}").parse().unwrap_or_default();
        service.clone().oneshot(request)
    });
    let all = join_all(calls);
    let late = async {
        // Comes when one has just ended, and finds the others waiting.
        sleep(millis(100)).await;
        service.clone().oneshot(get()).await
    };
    join(all, late).await.1?;
    let paths: Vec<_> = script.arrived().iter().map(|it| it.uri.path().to_owned()).collect();
    assert_eq!(paths, ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9", "/one"]);
    assert_eq!(script.most_open(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_all_pass() -> Tested {
    let script = Script::of([second()]);
    let limit = ConcurrencyLimitLayer::from_policy(Policy::default());
    let service = limit.layer(script.clone());
    let all = join_all((0..1_000).map(|_| service.clone().oneshot(get()))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!((script.most_open(), script.elapsed()), (1_000, millis(0)));
    assert_eq!((limit.handle().in_use(), limit.handle().max()), (0, None));
    assert!(ConcurrencyLimitLayer::new(0).is_err(), "nothing at all would ever pass");
    Ok(())
}

// TC-04
#[tokio::test(start_paused = true)]
async fn whoever_gives_up_leaves_nothing_taken() -> Tested {
    let script = Script::by(|n| if n % 3 == 0 { Answer::hang() } else { second() });
    let limit = ConcurrencyLimitLayer::new(8)?.with_wait(millis(10));
    let service = limit.layer(script.clone());
    for round in 0..100 {
        let busy = (0..8).map(|_| timeout(millis(30), service.clone().oneshot(get())));
        let queued = (0..8).map(|n| timeout(millis(5 + n), service.clone().oneshot(get())));
        let (busy, queued) = join(join_all(busy), join_all(queued)).await;
        assert!(queued.iter().all(|it| !matches!(it, Ok(Ok(_)))), "all were taken");
        drop((busy, queued));
        assert_eq!((limit.handle().in_use(), script.open()), (0, 0), "round {round}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_error_leaves_nothing_taken() -> Tested {
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(millis(0));
    let service = limit.layer(Script::of([Answer::fail(io::ErrorKind::ConnectionReset)]));
    for _ in 0..3 {
        assert_eq!(kind(&service.clone().oneshot(get()).await), Some(ErrorKind::Client));
        assert_eq!(limit.handle().in_use(), 0);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn layers_and_services_that_are_clones_share_a_limit_and_readiness_takes_nothing() -> Tested {
    let limit = ConcurrencyLimitLayer::new(1)?.with_wait(millis(0));
    let script = Script::of([Answer::status(200).body([Beat::Hang])]);
    let mut ready = limit.layer(script.clone());
    let ready = ServiceExt::<http::Request<http_body_util::Full<bytes::Bytes>>>::ready(&mut ready);
    let ready = ready.await?;
    assert_eq!(limit.handle().in_use(), 0);
    let held = limit.clone().layer(script).oneshot(get()).await?;
    assert_eq!(limit.handle().in_use(), 1);
    let refused = tower::Service::call(ready, get()).await;
    assert_eq!(kind(&refused), Some(ErrorKind::LimitReached));
    drop(held);
    Ok(())
}
