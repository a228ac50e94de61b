//! How many attempts, and when.

use super::*;

// BO-07, without a budget
#[test]
fn a_call_makes_exactly_the_attempts_of_its_policy() {
    for attempts in [1, 3, 4] {
        let client = Client::with(Policy::builder().with_attempts(attempts));
        let mut call = client.call();
        for made in 1..attempts {
            retry(client.answer(&mut call, GET, 503));
            assert_eq!(call.attempts(), made);
        }
        let stop = stop(client.answer(&mut call, GET, 503));
        assert_eq!((call.attempts(), stop.reason), (attempts, StopReason::Attempts));
    }
}

// BO-08, without a budget
#[test]
fn calls_share_no_count_of_attempts() {
    let client = Client::new();
    let mut calls: Vec<_> = (0..101).map(|_| client.call()).collect();
    for _ in 0..2 {
        calls.iter_mut().for_each(|call| drop(retry(client.answer(call, GET, 503))));
    }
    for call in &mut calls {
        done(client.answer(call, GET, 200));
        assert_eq!(call.attempts(), 3);
    }
}

// ID-01
#[test]
fn what_may_do_harm_twice_is_repeated_only_if_it_was_not_carried_out() {
    let client = Client::new();
    retry(client.answer(&mut client.call(), POST, 429));
    retry(client.fault(&mut client.call(), POST, Fault::Unsent));
    for code in [408, 425, 500, 502, 503, 504] {
        let stop = stop(client.answer(&mut client.call(), POST, code));
        assert_eq!(stop.reason, StopReason::NotIdempotent, "{code}");
    }
    let stop = stop(client.fault(&mut client.call(), POST, Fault::Ambiguous));
    assert_eq!(stop.reason, StopReason::NotIdempotent);
    retry(client.fault(&mut client.call(), GET, Fault::Ambiguous));
}

#[test]
fn a_hint_that_fits_is_waited_for() {
    let client = Client::new();
    let retry = retry(client.answer_with(&mut client.call(), GET, 429, &retry_after(4)));
    assert!((4.0..=5.0).contains(&retry.after.as_secs_f64()), "{:?}", retry.after);
    assert_eq!((retry.source, retry.why), (DelaySource::Hint, Transient::Asked));
    assert_eq!(retry.hint.pushback(), Some(Pushback::new(Duration::from_secs(4))));
}

#[test]
fn a_retry_that_leaves_an_attempt_less_than_its_least_is_not_made() {
    let client = Client::with(Policy::builder().with_jitter(Jitter::None));
    for (total, made) in [(149, false), (150, true)] {
        let decision = client.answer(&mut client.call_within(total), GET, 503);
        assert_eq!(matches!(decision, Decision::Retry(_)), made, "{total} ms");
    }
}

#[test]
fn the_earlier_of_deadline_and_total_time_ends_it() {
    let client = Client::new();
    let end = |millis| client.call_within(millis).deadline().remaining(client.now).as_millis();
    assert_eq!((end(5_000), end(31_000)), (5_000, 30_000));
    assert_eq!(client.call().started(), client.now);
}

#[test]
fn the_waits_of_a_call_are_its_own_and_only_failures_draw_them() {
    let waits = |successes| {
        let client = Client::new();
        (0..successes).for_each(|_| done(client.answer(&mut client.call(), GET, 200)));
        let mut calls = [client.call(), client.call()];
        let mut waits = Vec::new();
        for _ in 0..2 {
            waits.extend(calls.iter_mut().map(|it| retry(client.answer(it, GET, 503)).after));
        }
        waits
    };
    assert_eq!(waits(0), waits(1_000));
    let mut different = waits(0);
    assert!(different[..2].iter().all(|wait| *wait <= Duration::from_millis(100)));
    assert!(different[2..].iter().all(|wait| *wait <= Duration::from_millis(200)));
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 4);
}

#[test]
fn the_wall_clock_is_read_for_a_date_alone() {
    let client = Client::new();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_930_478_400);
    let date = httpdate::fmt_http_date(now + Duration::from_secs(9));
    let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, date.parse().unwrap())]);
    let outcome = Outcome::Response { status: StatusCode::SERVICE_UNAVAILABLE, headers: &headers };
    let bounds = Bounds { policy: &client.policy, budget: None, streams: &client.streams };
    let retry = retry(client.call().decide(bounds, GET, &outcome, client.now, || now));
    assert!(retry.after >= Duration::from_secs(9));
}

#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let mut client = Client::new().own_budget();
    let mut call = client.call();
    client.now -= Duration::from_secs(3_600);
    assert!(retry(client.answer(&mut call, GET, 503)).after <= Duration::from_millis(100));
}
