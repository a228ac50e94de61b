use std::time::{Duration, Instant};

use super::super::{ClientCore, Reply, StoreFailure};
use super::{ask, moment, ms, process, succeed, terms};
use crate::budget::{Costs, Denied, Earn, Rules};
use crate::classify::Transient;
use crate::ratio::Ratio;
use crate::rng::Seed;

const LEFT: Duration = Duration::MAX;

/// What the pool of a fleet of ten says when it gives so much.
fn gives(grant: u64) -> Reply {
    Reply { grant, gap: 1_000, processes: 10, epoch: 3, generation: 7, ..Reply::default() }
}

/// Carries whatever is due until `end`, to a pool that answers with `reply`.
fn exchange(client: &mut ClientCore, reply: &Reply, end: Instant) -> u32 {
    let mut messages = 0;
    while let Some(due) = client.due(end).filter(|due| *due <= end) {
        if let Some(message) = client.message(due) {
            client.answered(message.number, reply, due);
            messages += 1;
        }
    }
    messages
}

fn fail(client: &mut ClientCore, failure: StoreFailure, times: u32) -> Instant {
    let mut at = None;
    let mut failed = 0;
    while failed < times {
        let Some(due) = client.due(moment()) else { return moment() };
        at = Some(due);
        if let Some(message) = client.message(due) {
            client.failed(message.number, failure, due);
            failed += 1;
        }
    }
    at.unwrap_or_else(moment)
}

#[test]
fn it_begins_with_nothing_and_spends_what_it_earns() {
    let now = moment();
    let client = process(10.0, 1, now);
    assert_eq!(client.tokens(now), 0.0);
    succeed(client.budget(), 10, now);
    assert_eq!(client.tokens(now), 2.0);
    let mut grant = ask(client.budget(), now).unwrap();
    assert_eq!(grant.slot(now, LEFT), Ok(Duration::ZERO));
    grant.sent();
    assert_eq!(client.tokens(now), 1.0);
}

#[test]
fn a_ticket_is_looked_at_after_a_tenth_of_a_second_and_once_more() {
    let now = moment();
    let client = process(10.0, 1, now);
    let mut grant = ask(client.budget(), now).unwrap();
    assert_eq!(grant.slot(now, LEFT), Ok(ms(100)));
    assert_eq!(grant.slot(now + ms(60), LEFT), Ok(ms(40)));
    assert_eq!(grant.slot(now + ms(100), LEFT), Ok(ms(100)));
    assert_eq!(grant.slot(now + ms(200), LEFT), Err(Denied::Empty));
}

#[test]
fn a_ticket_is_paid_for_by_the_answer_and_sent_when_that_says() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    let mut grants: Vec<_> = (0..3).map(|_| ask(client.budget(), now).unwrap()).collect();
    let message = client.message(now).unwrap();
    assert_eq!((message.want, message.deposit), (3, 0));
    let reply = Reply { first: 90_000, gap: 20_000, ..gives(2) };
    client.answered(message.number, &reply, now + ms(20));

    let at = now + ms(120);
    let waits: Vec<_> = grants.iter_mut().map(|grant| grant.slot(at, LEFT)).collect();
    assert_eq!(waits, [Ok(Duration::ZERO), Ok(ms(10)), Ok(ms(100))]);
    let third = grants.pop().unwrap();
    let second = grants.pop().unwrap();
    let _ = client.tokens(at);
    drop(second);
    assert_eq!(client.tokens(at), 1.0, "given back");
    drop(third);
    assert_eq!(client.tokens(at), 1.0, "had nothing");
}

#[test]
fn a_process_that_is_short_asks_at_once_but_not_all_the_time() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    let _first = ask(client.budget(), now).unwrap();
    assert_eq!(client.due(now), Some(now));
    let message = client.message(now).unwrap();
    assert_eq!(client.due(now), None, "one is on its way");
    client.answered(message.number, &gives(0), now);
    assert_eq!(client.due(now), Some(now + ms(50)));

    let busy = Reply { load: 3_000_000_000, ..gives(0) };
    let message = client.message(now + ms(50)).unwrap();
    client.answered(message.number, &busy, now + ms(50));
    assert_eq!(client.due(now), Some(now + ms(500)), "nine times as long");
}

#[test]
fn a_ticket_that_needs_no_message_does_not_keep_its_carrier_busy() {
    let now = moment();
    let mut client = ClientCore::new(dear(2.0), terms(10.0), Seed::new(1), now);
    let ask = |client: &ClientCore, why| client.budget().grant(now, Duration::ZERO, LEFT, why);
    let (dear, cheap) = (Transient::Ambiguous, Transient::Server);
    let first = ask(&client, dear).unwrap();
    let waits = ask(&client, dear).unwrap();
    let message = client.message(now).unwrap();
    client.answered(message.number, &gives(1), now);
    let last = ask(&client, cheap).unwrap();
    drop((first, waits));
    let at = now + ms(50);
    while let Some(due) = client.due(at).filter(|due| *due <= at) {
        match client.message(due) {
            Some(message) => client.answered(message.number, &gives(0), due),
            None => assert!(client.due(at).is_some_and(|due| due > at), "later, not at once"),
        }
    }
    drop(last);
}

#[test]
fn what_was_given_up_does_not_stand_in_the_way() {
    let now = moment();
    let mut client = ClientCore::new(dear(2.0), terms(10.0), Seed::new(1), now);
    let ask = |client: &ClientCore, why| client.budget().grant(now, Duration::ZERO, LEFT, why);
    let first = ask(&client, Transient::Ambiguous).unwrap();
    let message = client.message(now).unwrap();
    client.answered(message.number, &gives(1), now);
    drop(first);
    let mut last = ask(&client, Transient::Server).unwrap();
    assert_eq!(last.slot(now, LEFT), Ok(Duration::ZERO), "there is one token for it");
}

/// What an ambiguous failure costs so much of.
fn dear(tokens: f64) -> Rules {
    let costs = Costs::ONE.with(Transient::Ambiguous, tokens);
    let (ratio, earn) = (Ratio::ZERO, Earn::PerSuccess);
    Rules { ratio, earn, costs, floor: 0.0, start: 0.0, burst: 1 }
}

#[test]
fn a_wakened_carrier_learns_that_a_ticket_was_opened() {
    let (waker, wakes) = futures_waker();
    let now = moment();
    let client = process(10.0, 1, now);
    client.wake_when_short(&waker);
    succeed(client.budget(), 5, now);
    let _own = ask(client.budget(), now).unwrap();
    assert_eq!(wakes(), 0, "paid from its own");
    let _short = ask(client.budget(), now).unwrap();
    assert_eq!(wakes(), 1);
}

fn futures_waker() -> (std::task::Waker, impl Fn() -> usize) {
    struct Bell(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Bell {
        fn wake(self: std::sync::Arc<Self>) {
            // Relaxed: a count.
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let bell = std::sync::Arc::new(Bell(0.into()));
    let waker = std::sync::Arc::clone(&bell).into();
    // Relaxed: a count.
    (waker, move || bell.0.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn what_it_does_not_need_goes_to_the_pool() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    succeed(client.budget(), 100, now);
    let due = client.due(now).unwrap();
    assert!((ms(800)..=ms(1_200)).contains(&(due - now)), "{:?}", due - now);
    let message = client.message(due).unwrap();
    assert!(message.calls > 70_000_000, "{message:?}");
    // A quarter of a fifth of the 60 calls/s that are left of a hundred after a second.
    let kept = client.tokens(due);
    assert!((2.0..4.0).contains(&kept), "{kept}");
    assert!(message.deposit > 12_000_000, "{message:?}");
}

#[test]
fn a_process_of_few_calls_keeps_no_fractions() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    succeed(client.budget(), 2, now);
    let message = client.message(client.due(now).unwrap()).unwrap();
    assert!(message.deposit > 300_000, "{message:?}");
    assert!(client.tokens(now + ms(1_200)) < 0.000_001);
}

#[test]
fn an_idle_process_says_nothing() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    assert_eq!(exchange(&mut client, &gives(0), now + ms(60_000)), 0);
    assert_eq!(client.budget().pace(now + ms(60_000)), 0.0, "and still belongs to the fleet");
}

#[test]
fn what_failed_before_it_was_sent_comes_back_and_what_may_have_arrived_does_not() {
    for (failure, left) in
        [(StoreFailure::Unsent, 1.0), (StoreFailure::Refused, 1.0), (StoreFailure::Unknown, 0.0)]
    {
        let now = moment();
        let mut client = process(10.0, 1, now);
        succeed(client.budget(), 4, now);
        let due = client.due(now).unwrap();
        let before = client.tokens(due);
        let message = client.message(due).unwrap();
        client.failed(message.number, failure, due);
        let after = client.tokens(due);
        assert!((after - before * left).abs() < 2e-6, "{failure:?}: {after} of {before}");
    }
}

#[test]
fn an_answer_to_another_message_changes_nothing() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    let _short = ask(client.budget(), now).unwrap();
    let first = client.message(now).unwrap();
    client.failed(first.number, StoreFailure::Unknown, now + ms(250));
    client.answered(first.number, &gives(9), now + ms(260));
    assert_eq!((client.tokens(now + ms(260)), client.processes()), (0.0, 0));
    let second = client.message(now + ms(260)).unwrap();
    client.answered(second.number, &gives(3), now + ms(270));
    client.answered(second.number, &gives(3), now + ms(271));
    assert_eq!(client.tokens(now + ms(271)).floor(), 1.0, "two, and a little less");
}

#[test]
fn after_two_failures_it_goes_by_its_own_and_after_three_it_asks_no_more() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    exchange(&mut client, &gives(0), now);
    let mut at = now;
    for _ in 0..40 {
        at += ms(100);
        succeed(client.budget(), 10, at);
        exchange(&mut client, &gives(0), at);
    }
    assert!((client.budget().pace(at) / 5.0 - 1.0).abs() < 0.1, "a quarter of a fifth of 100");
    fail(&mut client, StoreFailure::Unknown, 1);
    let at = fail(&mut client, StoreFailure::Unknown, 1);
    let message = client.message(client.due(at).unwrap()).unwrap();
    assert_eq!(message.deposit, 0, "nothing is handed over");
    let pace = client.budget().pace(at);
    assert!(pace > 6.0, "all of a fifth of what is left of 100, and a tenth of the floor: {pace}");
    client.failed(message.number, StoreFailure::Unknown, at);
    assert_eq!(client.failures(), 3);
    let grants = std::iter::repeat_with(|| ask(client.budget(), at)).map_while(Result::ok);
    let own: Vec<_> = grants.take(200).collect();
    assert!(own.len() < 30, "{}: no tickets", own.len());
}

#[test]
fn one_answer_makes_it_one_of_the_fleet_again() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    succeed(client.budget(), 4, now);
    let at = fail(&mut client, StoreFailure::Unsent, 5);
    let due = client.due(at).unwrap();
    assert!(due - at <= ms(600), "half the interval, and a fifth: {:?}", due - at);
    let message = client.message(due).unwrap();
    client.answered(message.number, &gives(0), due);
    assert_eq!((client.failures(), client.processes()), (0, 10));
    let mut grants: Vec<_> = (0..8).map_while(|_| ask(client.budget(), due).ok()).collect();
    assert_eq!(grants.len(), 8, "tickets again");
    assert!(grants.pop().unwrap().slot(due, LEFT).unwrap() > Duration::ZERO);
}

#[test]
fn without_anyone_to_carry_its_messages_it_goes_by_its_own() {
    let now = moment();
    let client = process(10.0, 1, now);
    let at = now + ms(3_001);
    succeed(client.budget(), 100, at);
    let first = ask(client.budget(), at).unwrap();
    first.sent();
    succeed(client.budget(), 100, at + ms(1));
    assert!(client.budget().pace(at + ms(1)) > 10.0);
    let granted = std::iter::repeat_with(|| ask(client.budget(), at)).map_while(Result::ok);
    assert!((10..100).contains(&granted.take(200).collect::<Vec<_>>().len()), "and no tickets");
}

#[test]
fn a_farewell_hands_over_everything_and_nothing_is_asked_after_it() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    succeed(client.budget(), 40, now);
    let message = client.farewell(now).unwrap();
    assert_eq!(message.deposit, 8_000_000);
    assert_eq!(client.tokens(now), 0.0);
    client.answered(message.number, &gives(0), now);
    assert_eq!(ask(client.budget(), now).unwrap_err(), Denied::Empty);
    assert!(process(10.0, 1, now).farewell(now).is_none());
}

#[test]
fn what_was_asked_for_in_an_interval_is_leased_ahead_in_the_next() {
    let now = moment();
    let mut client = process(10.0, 1, now);
    let mut at = now;
    let mut most = 0;
    for _ in 0..30 {
        at += ms(100);
        drop(ask(client.budget(), at));
        while let Some(due) = client.due(at).filter(|due| *due <= at) {
            if let Some(message) = client.message(due) {
                most = most.max(message.want);
                client.answered(message.number, &gives(message.want), due);
            }
        }
    }
    assert!((9..=14).contains(&most), "{most}: ten a second");
    assert_eq!(terms(10.0), *client.terms());
}
