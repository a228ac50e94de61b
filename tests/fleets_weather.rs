//! A store that is slow, down, mute or gone: no call fails for it.

use std::time::Duration;

use abate::RetryLayer;
use abate::fleet::{EXCHANGE_TIMEOUT, StoreFailure};
use abate_tests::events::Events;
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceExt};

use super::fleets_store::{Memory, Weather};
use super::{Process, Tested, down};

const BAD: [Weather; 5] = [
    Weather::Fails(StoreFailure::Unsent),
    Weather::Fails(StoreFailure::Refused),
    Weather::Fails(StoreFailure::Unknown),
    Weather::Hangs,
    Weather::Mute,
];

#[tokio::test(start_paused = true)]
async fn in_bad_weather_a_process_retries_with_what_it_earns() -> Tested {
    for weather in BAD {
        let store = Memory::new();
        store.turns(weather);
        let process = Process::of(&store, 0.0)?;
        process.succeeds(500).await?;
        let began = Instant::now();
        assert_eq!(process.fails().await, 2, "{weather:?}");
        assert!(
            began.elapsed() <= Duration::from_millis(300),
            "{weather:?}: {:?}",
            began.elapsed()
        );
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_never_waits_for_a_store() -> Tested {
    for weather in BAD {
        let store = Memory::new();
        store.turns(weather);
        let process = Process::of(&store, 0.0)?;
        let began = Instant::now();
        let service = process.retries().layer(Script::of([Answer::status(200)]));
        for _ in 0..1_000 {
            service.clone().oneshot(get()).await?;
        }
        assert_eq!(began.elapsed(), Duration::ZERO, "{weather:?}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_refused_soon_after_its_backoff_if_nobody_answers() -> Tested {
    let store = Memory::new();
    let process = Process::of(&store, 0.0)?;
    store.turns(Weather::Hangs);
    let began = Instant::now();
    assert_eq!(process.fails().await, 1);
    // A backoff of a tenth of a second at the most, and two waits of as much for the ticket.
    assert!(began.elapsed() <= Duration::from_millis(300), "{:?}", began.elapsed());
    sleep(Duration::from_secs(5)).await;
    let began = Instant::now();
    assert_eq!(process.fails().await, 1);
    assert_eq!(began.elapsed(), Duration::ZERO, "after three failures nobody is asked");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_change_of_weather_is_told_once() -> Tested {
    let store = Memory::new();
    let process = Process::of(&store, 5.0)?;
    let events = Events::listen();
    process.succeeds(200).await?;
    assert_eq!(told(&events), (0, 0));
    for weather in BAD {
        store.turns(weather);
        process.succeeds(500).await?;
        assert_eq!(told(&events), (1, 0), "{weather:?}");
        store.turns(Weather::Fair);
        process.succeeds(500).await?;
        assert_eq!(told(&events), (0, 1), "{weather:?}");
    }
    Ok(())
}

/// Bad news, and good news.
fn told(events: &Events) -> (usize, usize) {
    let messages = events.messages();
    let count = |part| messages.iter().filter(|message| message.contains(part)).count();
    (count("this process retries with what it earns"), count("answers again"))
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_comes_back_and_what_was_lost_does_not() -> Tested {
    let mut held = Vec::new();
    for failure in [StoreFailure::Unsent, StoreFailure::Refused, StoreFailure::Unknown] {
        let store = Memory::new();
        store.turns(Weather::Fails(failure));
        let process = Process::of(&store, 0.0)?;
        process.succeeds(200).await?;
        held.push(process.budget.tokens());
    }
    assert!(held[0] > 35.0 && held[1] > 35.0, "{held:?} of 40, and some of it has faded");
    assert!(held[2] < 33.0, "{held:?}: the first deposit is lost, and no other is made");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_dropped_half_way_can_be_driven_again() -> Tested {
    let store = Memory::new();
    let (well, ill) = (Process::of(&store, 0.0)?, Process::of(&store, 0.0)?);
    well.succeeds(500).await?;
    well.driver.abort();
    store.pools().latency = Duration::from_millis(100);
    let service = ill.retries().layer(down());
    let call = tokio::spawn(service.oneshot(get()));
    sleep(Duration::from_millis(50)).await;
    assert_eq!(store.pools().open, 1, "in the middle of an exchange");
    ill.driver.abort();
    let _ = call.await?;

    store.pools().latency = Duration::from_millis(2);
    let driver = tokio::spawn(ill.fleet.drive());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(ill.fails().await, 2);
    driver.abort();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn without_a_driver_a_budget_goes_by_what_its_process_earns() -> Tested {
    let process = Process::of(&Memory::new(), 10.0)?;
    process.driver.abort();
    sleep(Duration::from_secs(5)).await;
    process.succeeds(100).await?;
    let retries = RetryLayer::new(process.policy.clone()).with_budget(process.budget.clone());
    let (mut sent, began) = (0, Instant::now());
    for _ in 0..10 {
        let script = down();
        retries.layer(script.clone()).oneshot(get()).await?;
        sent += script.count() - 1;
    }
    assert_eq!(sent, 10, "twenty were earned");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}: at its own pace", began.elapsed());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_a_store_that_hangs() -> Tested {
    let store = Memory::new();
    let process = Process::of(&store, 0.0)?;
    process.succeeds(100).await?;
    store.turns(Weather::Hangs);
    let began = Instant::now();
    process.fleet.shutdown().await;
    assert!(began.elapsed() <= Duration::from_millis(101), "{:?}", began.elapsed());
    sleep(EXCHANGE_TIMEOUT).await;
    assert!(process.driver.is_finished());
    Ok(())
}
