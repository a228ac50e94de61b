//! What a call earns, costs and counts for.

use super::*;

#[test]
fn a_fresh_budget_lets_the_first_call_fail_twice_and_succeed() {
    let client = Client::new().own_budget();
    let mut call = client.call();
    for _ in 0..2 {
        let mut grant = retry(client.answer(&mut call, GET, 503)).grant.unwrap();
        assert_eq!(grant.slot(client.now, Duration::MAX), Ok(Duration::ZERO));
        grant.sent();
    }
    done(client.answer(&mut call, GET, 200));
    assert_eq!(call.attempts(), 3);
}

#[test]
fn a_success_earns_once_on_whichever_attempt() {
    for failures in 0..3 {
        let client = Client::new().budget(1.0, 0.0, 5.0, 9);
        let mut call = client.call();
        for _ in 0..failures {
            retry(client.answer(&mut call, GET, 503)).grant.unwrap().sent();
        }
        done(client.answer(&mut call, GET, 200));
        assert_eq!(client.tokens(), 5.0 - f64::from(failures) + 1.0);
    }
}

#[test]
fn what_the_policy_does_not_retry_earns_unless_it_is_trouble() {
    let client = Client::new().budget(1.0, 0.0, 0.0, 1);
    for (n, code) in [200, 204, 302, 304, 400, 401, 403, 404, 409, 410, 422].iter().enumerate() {
        done(client.answer(&mut client.call(), GET, *code));
        assert_eq!(client.tokens(), n as f64 + 1.0, "{code}");
    }
    let client = Client::new().budget(1.0, 0.0, 0.0, 1);
    for code in [501, 505, 500, 503, 408, 425, 429] {
        stop(client.answer(&mut client.call(), STREAM, code));
        assert_eq!(client.tokens(), 0.0, "{code}");
    }
}

#[test]
fn a_call_is_counted_once_and_when_it_is_sent() {
    let client = Client::new().budget(1.0, 0.0, 9.0, 9);
    let mut call = client.call();
    assert_eq!(client.counted(), 0.0);
    call.sent(client.budget.as_ref(), client.now);
    assert_eq!(client.counted(), 1.0);
    for _ in 0..2 {
        drop(retry(client.answer(&mut call, GET, 503)));
        call.sent(client.budget.as_ref(), client.now);
    }
    done(client.answer(&mut call, GET, 200));
    assert_eq!(client.counted(), 1.0);
}

#[test]
fn a_call_whose_sending_nobody_saw_is_counted_at_its_outcome() {
    let client = Client::new().budget(1.0, 0.0, 9.0, 9);
    done(client.answer(&mut client.call(), GET, 200));
    stop(client.answer(&mut client.call(), POST, 503));
    stop(client.answer(&mut client.call(), GET, 501));
    assert_eq!(client.counted(), 3.0);
}

// CB-10
#[test]
fn a_refusal_of_our_own_costs_and_counts_nothing() {
    for fault in [Fault::Local, Fault::Cancelled] {
        let client = Client::new().budget(1.0, 0.0, 2.0, 1);
        let mut call = client.call();
        let stop = stop(client.fault(&mut call, GET, fault));
        assert_eq!((stop.retry_at, stop.hint), (None, Hint::ABSENT));
        assert_eq!((call.attempts(), client.tokens(), client.counted()), (0, 2.0, 0.0));
    }
}

#[test]
fn a_refusal_on_the_second_attempt_leaves_one_counted_and_returns_the_token() {
    let client = Client::new().budget(0.0, 0.0, 2.0, 1);
    let mut call = client.call();
    let retry = retry(client.answer(&mut call, GET, 503));
    assert_eq!(client.tokens(), 1.0);
    drop(retry);
    assert_eq!(stop(client.fault(&mut call, GET, Fault::Local)).reason, StopReason::Refused);
    assert_eq!((call.attempts(), client.tokens()), (1, 2.0));
}

#[test]
fn without_a_budget_nothing_is_granted_and_nothing_denied() {
    let client = Client::new();
    for _ in 0..1_000 {
        assert!(retry(client.answer(&mut client.call(), GET, 503)).grant.is_none());
    }
}
