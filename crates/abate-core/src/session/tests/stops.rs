//! Why there is no other attempt.

use super::*;

#[test]
fn every_way_to_stop_has_its_reason() {
    use StopReason::{
        Attempts, BodyNotReplayable, Cancelled, Deadline, Nested, NotIdempotent, NotRetryable,
        Refused,
    };
    let (client, once) = (Client::new(), Client::with(Policy::builder().with_attempts(1)));
    let long = retry_after(31);
    for (reason, decision) in [
        (Attempts, once.answer(&mut once.call(), GET, 503)),
        (Deadline, client.answer_with(&mut client.call(), GET, 503, &long)),
        (Deadline, client.answer(&mut client.call_within(50), GET, 503)),
        (NotRetryable, client.answer(&mut client.call(), GET, 501)),
        (NotRetryable, client.fault(&mut client.call(), GET, Fault::Permanent)),
        (NotIdempotent, client.answer(&mut client.call(), POST, 503)),
        (BodyNotReplayable, client.answer(&mut client.call(), STREAM, 503)),
        (Nested, client.answer(&mut client.call(), INNER, 503)),
        (Refused, client.fault(&mut client.call(), GET, Fault::Local)),
        (Cancelled, client.fault(&mut client.call(), GET, Fault::Cancelled)),
    ] {
        assert_eq!(stop(decision).reason, reason);
    }
}

#[test]
fn an_empty_budget_stops_it() {
    let client = Client::new().budget(0.2, 0.2, 0.9, 1);
    assert_eq!(stop(client.answer(&mut client.call(), GET, 503)).reason, StopReason::Budget);
    assert_eq!(client.tokens(), 0.9);
}

#[test]
fn a_pace_that_others_have_used_up_stops_it() {
    // Without a wait none drains away before it: one at once, one in flight, the third in 5 s.
    let client = Client::with(Policy::builder().with_base(Duration::ZERO)).budget(0.0, 0.2, 9.0, 1);
    let held: Vec<_> = (0..2).map(|_| retry(client.answer(&mut client.call(), GET, 503))).collect();
    assert_eq!(stop(client.answer(&mut client.call(), GET, 503)).reason, StopReason::Pace);
    assert_eq!(client.tokens(), 7.0, "nothing was taken");
    drop(held);
    retry(client.answer(&mut client.call(), GET, 503));
}

#[test]
fn a_slot_beyond_the_deadline_stops_it_as_that() {
    let policy = Policy::builder().with_jitter(Jitter::None);
    let client = Client::with(policy).budget(0.0, 2.0, 9.0, 1);
    let _held = [(); 2].map(|()| retry(client.answer(&mut client.call(), GET, 503)));
    // The third waits for 100 ms, and then for 400 ms for its slot.
    let late = client.answer(&mut client.call_within(549), GET, 503);
    assert_eq!(stop(late).reason, StopReason::Deadline);
    retry(client.answer(&mut client.call_within(550), GET, 503));
}

// ID-01
#[test]
fn a_request_that_may_be_repeated_once_is_carried_out_twice_at_the_most() {
    let client = Client::with(Policy::builder().with_attempts(5));
    let once = Traits { safety: Safety::Once, ..GET };
    for (answers, sent) in [
        (&[503, 503][..], 2),
        (&[503, 429, 503], 3),
        (&[429, 503], 2),
        (&[429, 429, 429, 429, 429], 5),
    ] {
        let mut call = client.call();
        let (last, before) = answers.split_last().unwrap();
        for &code in before {
            retry(client.answer(&mut call, once, code));
        }
        let end = stop(client.answer(&mut call, once, *last)).reason;
        let most = if sent == 5 { StopReason::Attempts } else { StopReason::NotIdempotent };
        assert_eq!((end, call.attempts()), (most, sent), "{answers:?}");
    }
}

#[test]
fn the_first_of_several_reasons_is_given() {
    let client = Client::with(Policy::builder().with_attempts(2)).budget(0.0, 0.0, 0.0, 1);
    let long = retry_after(60);
    let upload = Traits { safety: Safety::IfRefused, ..STREAM };
    let inner_upload = Traits { nested: true, ..upload };
    let reason = |call: &mut Session, traits, headers| {
        stop(client.answer_with(call, traits, 503, headers)).reason
    };

    // A first attempt that cost nothing leaves a call with its last.
    let unpaid = Client::new();
    let mut last = unpaid.call();
    retry(unpaid.answer(&mut last, GET, 503));
    assert_eq!(reason(&mut last.clone(), inner_upload, &long), StopReason::Nested);
    assert_eq!(reason(&mut last.clone(), upload, &long), StopReason::NotIdempotent);
    assert_eq!(reason(&mut last, STREAM, &long), StopReason::Attempts);
    assert_eq!(reason(&mut client.call(), STREAM, &long), StopReason::BodyNotReplayable);
    assert_eq!(reason(&mut client.call(), GET, &long), StopReason::Deadline);
    assert_eq!(reason(&mut client.call(), GET, &HeaderMap::new()), StopReason::Budget);
}

// RA-10
#[test]
fn a_hint_beyond_the_deadline_stops_at_once_and_costs_nothing() {
    let mut client = Client::new().budget(0.0, 0.0, 2.0, 1);
    let mut call = client.call_within(5_000);
    client.now += Duration::from_millis(100);
    let tokens = client.tokens();
    let stop = stop(client.answer_with(&mut call, GET, 503, &retry_after(30)));
    assert_eq!(stop.reason, StopReason::Deadline);
    assert_eq!(stop.retry_at, Some(client.now + Duration::from_secs(30)));
    assert_eq!(stop.hint.pushback(), Some(Pushback::new(Duration::from_secs(30))));
    assert_eq!((call.attempts(), client.tokens()), (1, tokens));
}

#[test]
fn whatever_stops_it_says_when_the_server_wants_to_be_called_again() {
    let client = Client::new();
    for (traits, code) in [(POST, 503), (STREAM, 429)] {
        let stop = stop(client.answer_with(&mut client.call(), traits, code, &retry_after(7)));
        assert_eq!(stop.retry_at, Some(client.now + Duration::from_secs(7)));
    }
    let at_once = stop(client.answer_with(&mut client.call(), POST, 503, &retry_after(0)));
    assert_eq!(at_once.retry_at, None);
}

#[test]
fn a_call_that_was_cut_at_its_deadline_ran_out_of_time() {
    let mut client = Client::new();
    let mut call = client.call_within(100);
    client.now += Duration::from_millis(99);
    let early = client.fault(&mut call, GET, Fault::Cancelled);
    assert_eq!(stop(early).reason, StopReason::Cancelled);
    client.now += Duration::from_millis(1);
    let cut = client.fault(&mut call, GET, Fault::Cancelled);
    assert_eq!(stop(cut).reason, StopReason::Deadline);
}

// ID-01
#[test]
fn a_server_that_says_when_to_send_a_call_again_has_said_that_it_may_be() {
    let headers = |code: &'static str, pushback: Option<&'static str>| {
        let fields = [("grpc-status", Some(code)), ("grpc-retry-pushback-ms", pushback)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let field = |(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        fields.map(field).collect::<HeaderMap>()
    };
    let grpc = Client::with(Policy::builder().with_grpc());
    let decide = |client: &Client, code, pushback| {
        client.answer_with(&mut client.call(), POST, 200, &headers(code, pushback))
    };
    for code in ["8", "14"] {
        let again = retry(decide(&grpc, code, Some("700")));
        assert!(again.after >= Duration::from_millis(700), "{code}: {:?}", again.after);
        assert_eq!(stop(decide(&grpc, code, None)).reason, StopReason::NotIdempotent, "{code}");
        assert_eq!(stop(decide(&grpc, code, Some("-1"))).reason, StopReason::NotRetryable);
    }
    assert_eq!(stop(decide(&grpc, "12", Some("700"))).reason, StopReason::NotRetryable);
    done(decide(&grpc, "5", Some("700")));
    let judged_only = Client::with(Policy::builder().with_judge(crate::grpc::judge));
    let undeclared = stop(decide(&judged_only, "8", Some("700")));
    assert_eq!(undeclared.reason, StopReason::NotIdempotent, "it is not read");
}
