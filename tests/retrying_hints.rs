//! What a server says about coming back.

use std::time::Duration;

use abate::{Policy, RetryLayer, StopReason};
use abate_tests::events::Events;
use abate_tests::script::{Answer, Script};
use tokio::time::timeout;
use tower::{Layer, ServiceExt};
use tracing::Level;

use super::{Tested, get, millis, report, retries, seconds, stop, unpaid};

/// What a timer may be late by.
const TICK: Duration = millis(2);

/// The first wait after `answer`, for many seeds.
async fn first_waits(answer: &Answer) -> Result<Vec<Duration>, abate::Error> {
    let mut waits = Vec::new();
    for seed in 0..50 {
        let script = Script::of([answer.clone(), Answer::status(200)]);
        let layer = RetryLayer::new(Policy::default()).without_budget().with_seed(seed);
        layer.layer(script.clone()).oneshot(get()).await?;
        waits.push(script.arrived()[1].at - script.arrived()[0].at);
    }
    Ok(waits)
}

fn hinted(code: u16, hint: &str) -> Answer {
    Answer::status(code).header("retry-after", hint)
}

#[track_caller]
fn assert_spread(waits: &[Duration], least: Duration, most: Duration) {
    let shortest = waits.iter().copied().min().unwrap_or_default();
    let longest = waits.iter().copied().max().unwrap_or_default();
    assert!(shortest >= least, "knocked after {shortest:?} instead of {least:?}");
    assert!(longest <= most + TICK, "waited for {longest:?}, more than {most:?}");
    assert!(longest - shortest > (most - least) / 2, "all within {shortest:?}..{longest:?}");
}

#[tokio::test(start_paused = true)]
async fn seconds_are_never_undercut_and_are_spread_above() -> Tested {
    for code in [429, 503, 408, 500] {
        assert_spread(&first_waits(&hinted(code, "2")).await?, seconds(2), millis(2_500));
    }
    assert_spread(&first_waits(&hinted(503, "20")).await?, seconds(20), seconds(25));
    Ok(())
}

// RA-04
#[tokio::test(start_paused = true)]
async fn fractions_are_seconds_too() -> Tested {
    assert_spread(&first_waits(&hinted(503, "0.25")).await?, millis(250), millis(350));
    assert_spread(&first_waits(&hinted(503, " 1.50 ")).await?, millis(1_500), millis(1_875));
    Ok(())
}

// RA-18
#[tokio::test(start_paused = true)]
async fn a_date_is_measured_against_the_servers_own() -> Tested {
    for date in [
        "Wed, 05 Mar 2031 12:00:04 GMT",
        "Wednesday, 05-Mar-31 12:00:04 GMT",
        "Wed Mar  5 12:00:04 2031",
    ] {
        let answer = hinted(503, date).header("date", "Wed, 05 Mar 2031 12:00:00 GMT");
        assert_spread(&first_waits(&answer).await?, seconds(4), seconds(5));
    }
    Ok(())
}

// RA-18
#[tokio::test(start_paused = true)]
async fn a_date_out_of_a_cache_or_without_another_is_measured_against_the_local_clock() -> Tested {
    let next_century = "Mon, 05 Mar 2131 12:00:04 GMT";
    let cached = hinted(503, next_century)
        .header("date", "Mon, 05 Mar 2131 12:00:00 GMT")
        .header("age", "90");
    for answer in [cached, hinted(503, next_century)] {
        let script = Script::of([answer]);
        let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!((stop(&response), script.count()), (Some(StopReason::Deadline), 1));
        assert!(report(&response).unwrap().retry_at().is_some());
    }
    Ok(())
}

// RA-01, RA-15
#[tokio::test(start_paused = true)]
async fn a_hint_that_is_over_leaves_the_jittered_backoff() -> Tested {
    let past = hinted(429, "Wed, 05 Mar 2031 11:59:20 GMT");
    for answer in [
        past.header("date", "Wed, 05 Mar 2031 12:00:00 GMT"),
        hinted(429, "Sun, 06 Nov 1994 08:49:37 GMT"),
        hinted(503, "0"),
        hinted(503, "0.0"),
    ] {
        assert_spread(&first_waits(&answer).await?, millis(0), millis(100));
    }
    let script = Script::of([hinted(503, "0")]);
    let response = retries(4)?.layer(script.clone()).oneshot(get()).await?;
    assert_eq!((response.status().as_u16(), script.count()), (503, 4));
    Ok(())
}

// RA-05, RA-08
#[tokio::test(start_paused = true)]
async fn a_hint_that_cannot_be_read_is_told_and_ignored() -> Tested {
    for hint in [
        "-7",
        "soon",
        "",
        "1,5",
        "1.",
        "2 s",
        "1e3",
        "0x10",
        "Sat, 01 Jan 0000 00:00:00 GMT",
        "Tue, 30 Feb 2031 00:00:00 GMT",
    ] {
        let events = Events::listen();
        let answer = hinted(503, hint).header("date", "Wed, 05 Mar 2031 12:00:00 GMT");
        let script = Script::of([answer, Answer::status(200)]);
        let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!(response.status(), 200);
        assert!(script.arrived()[1].at <= millis(100) + TICK, "{hint:?}");
        let told = events.messages();
        let [ignored, retrying] = &told[..] else { panic!("{hint:?}: {told:?}") };
        assert!(ignored.starts_with("hint ignored"), "{hint:?}: {told:?}");
        assert_eq!(retrying, "retrying");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_cannot_be_read_is_told_at_the_end_too() -> Tested {
    let events = Events::listen();
    let script = Script::of([hinted(503, "soon")]);
    let response = retries(1)?.layer(script).oneshot(get()).await?;
    assert_eq!(stop(&response), Some(StopReason::Attempts));
    let told = events.take();
    assert!(told.iter().all(|event| event.level == Level::DEBUG));
    let told: Vec<_> = told.iter().map(|event| &*event.message).collect();
    let [ignored, "stopped retrying"] = &told[..] else { panic!("{told:?}") };
    assert!(ignored.starts_with("hint ignored"), "{told:?}");
    Ok(())
}

// RA-07, RA-08
#[tokio::test(start_paused = true)]
async fn a_hint_of_ages_ends_the_call_with_the_response() -> Tested {
    for hint in [
        "9999999999",
        "9223372036854775808",
        "18446744073709551616",
        "99999999999999999999999999999999.5",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        let script = Script::of([hinted(503, hint)]);
        let response = retries(3)?.layer(script.clone()).oneshot(get()).await?;
        assert_eq!((response.status().as_u16(), script.count()), (503, 1), "{hint}");
        assert_eq!(stop(&response), Some(StopReason::Deadline), "{hint}");
        assert_eq!(script.elapsed(), millis(0));
    }
    Ok(())
}

// RA-07
#[tokio::test(start_paused = true)]
async fn a_hint_of_ages_is_never_cut_short_where_nothing_bounds_the_call() -> Tested {
    for hint in ["9999999999", "9223372036854775808", "18446744073709551616"] {
        let script = Script::of([hinted(503, hint)]);
        let layer = unpaid(Policy::builder().with_total_timeout(Duration::MAX))?;
        let call = layer.layer(script.clone()).oneshot(get());
        match timeout(seconds(365 * 86_400), call).await {
            Err(_) => {}
            // More than a clock can count is more than anyone waits for.
            Ok(response) => assert_eq!(stop(&response?), Some(StopReason::Deadline), "{hint}"),
        }
        assert_eq!(script.count(), 1, "{hint}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_several_hints_the_longest_counts() -> Tested {
    let answer = hinted(503, "1").header("retry-after", "3").header("retry-after", "2");
    assert_spread(&first_waits(&answer).await?, seconds(3), millis(3_750));
    Ok(())
}

// RA-12
#[tokio::test(start_paused = true)]
async fn a_header_whose_unit_nobody_declared_is_not_used() -> Tested {
    for value in ["1930478405", "1930478405000", "5", "1930478390"] {
        let answer = Answer::status(429).header("x-ratelimit-reset", value);
        assert_spread(&first_waits(&answer).await?, millis(0), millis(100));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_an_earlier_attempt_is_over() -> Tested {
    let script = Script::of([hinted(503, "5"), Answer::status(503), Answer::status(200)]);
    retries(3)?.layer(script.clone()).oneshot(get()).await?;
    let at: Vec<_> = script.arrived().iter().map(|it| it.at).collect();
    assert!(at[1] >= seconds(5));
    assert!(at[2] - at[1] <= millis(200) + TICK, "the second wait is our own");
    Ok(())
}
