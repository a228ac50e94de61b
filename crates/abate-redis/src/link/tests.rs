//! The supervisor alone, in made-up time.

use std::time::{Duration, Instant};

use abate_core::rng::Seed;
use redis::Value;

use super::error::{Cause, Refusal};
use super::supervisor::{Change, Orders, Seen, Supervisor};

const MS: Duration = Duration::from_millis(1);

#[test]
fn it_dials_at_once_when_it_begins() {
    let start = Instant::now();
    assert_eq!(begun(start).dial_at(), Some(start));
}

#[test]
fn one_timeout_is_forgiven_and_the_second_in_a_row_cuts() {
    let (mut it, now) = connected();
    assert_eq!(it.saw(Seen::TimedOut, now), Orders::default());
    assert_eq!(it.saw(Seen::Answered, now), Orders::default());
    assert_eq!(it.saw(Seen::TimedOut, now), Orders::default());
    assert_eq!(it.dial_at(), None);
    let orders = it.saw(Seen::TimedOut, now);
    assert_eq!(orders, Orders { cut: true, change: Some(Change::Down(Cause::Timeout)) });
    assert!(it.dial_at().unwrap() <= now + 100 * MS);
}

#[test]
fn a_change_of_state_is_told_once() {
    let (mut it, now) = connected();
    assert!(it.saw(Seen::Dropped(Cause::Dropped), now).change.is_some());
    for _ in 0..5 {
        it.dialling();
        assert_eq!(it.saw(Seen::NotConnected(Cause::ConnectTimeout), now).change, None);
    }
    assert_eq!(it.cause(), Cause::ConnectTimeout);
    it.dialling();
    assert_eq!(it.saw(Seen::Connected, now).change, None);
    assert_eq!(it.saw(Seen::Answered, now).change, Some(Change::Up));
    assert_eq!(it.saw(Seen::Answered, now).change, None);
}

#[test]
fn a_first_connection_that_answers_is_no_news() {
    let mut it = begun(Instant::now());
    it.dialling();
    it.saw(Seen::Connected, Instant::now());
    assert_eq!(it.saw(Seen::Answered, Instant::now()).change, None);
}

#[test]
fn an_idle_connection_that_ends_is_no_news() {
    let (mut it, now) = connected();
    assert_eq!(it.saw(Seen::DroppedIdle, now), Orders { cut: true, change: None });
    assert!(it.dial_at().unwrap() <= now + 100 * MS);
}

#[test]
fn no_wait_is_longer_than_the_trouble_has_lasted_nor_than_thirty_seconds() {
    let start = Instant::now();
    for (lasted, most) in [(0, 100), (50, 100), (700, 700), (9_000, 9_000), (80_000, 30_000)] {
        let waits = waits(|it| {
            it.saw(Seen::NotConnected(Cause::ConnectTimeout), start);
            it.saw(Seen::NotConnected(Cause::ConnectTimeout), start + lasted * MS);
            start + lasted * MS
        });
        assert_spread(&waits, most * MS);
    }
}

#[test]
fn an_answer_ends_the_trouble_and_a_connection_alone_does_not() {
    let start = Instant::now();
    let after = |seen: fn() -> Seen| {
        waits(|it| {
            it.saw(Seen::NotConnected(Cause::ConnectTimeout), start);
            it.saw(Seen::Connected, start + 20_000 * MS);
            it.saw(seen(), start + 20_000 * MS);
            it.saw(Seen::DroppedIdle, start + 20_000 * MS);
            start + 20_000 * MS
        })
    };
    assert_spread(&after(|| Seen::Answered), 100 * MS);
    assert_spread(&after(|| Seen::TimedOut), 20_000 * MS);
}

#[test]
fn a_connection_that_stood_idle_for_long_ends_the_trouble() {
    let start = Instant::now();
    for (stood, most) in [(29_999, 29_999), (30_000, 100)] {
        let waits = waits(|it| {
            it.saw(Seen::DroppedIdle, start);
            it.saw(Seen::Connected, start);
            it.saw(Seen::DroppedIdle, start + stood * MS);
            start + stood * MS
        });
        assert_spread(&waits, most * MS);
    }
}

/// The wait that 200 supervisors draw, `until` the moment that the story ends with.
fn waits(story: impl Fn(&mut Supervisor) -> Instant) -> Vec<Duration> {
    let wait = |seed| {
        let mut it = Supervisor::new(Instant::now(), Seed::new(seed).stream(0));
        let now = story(&mut it);
        it.dial_at().map_or(Duration::MAX, |at| at - now)
    };
    (0..200).map(wait).collect()
}

fn assert_spread(waits: &[Duration], most: Duration) {
    let (shortest, longest) = (waits.iter().min(), waits.iter().max());
    assert!(longest.is_some_and(|it| *it <= most && *it > most.mul_f64(0.9)), "{longest:?}");
    assert!(shortest.is_some_and(|it| *it < most.mul_f64(0.1)), "{shortest:?}");
}

#[test]
fn a_replica_is_asked_on_while_another_connection_is_made() {
    for code in ["READONLY", "MASTERDOWN"] {
        let (mut it, now) = connected();
        let orders = it.saw(Seen::Refused(refusal(code)), now);
        assert!(!orders.cut && matches!(orders.change, Some(Change::Down(_))), "{code}");
        let dial_at = it.dial_at().unwrap();
        it.saw(Seen::Refused(refusal(code)), now + MS);
        assert_eq!(it.dial_at(), Some(dial_at), "a second refusal must not put it off");
        assert_eq!(it.saw(Seen::Answered, now + 2 * MS).change, Some(Change::Up));
        assert_eq!(it.dial_at(), None, "promoted in place: no other connection is needed");
    }
}

#[test]
fn a_server_that_loads_has_five_seconds() {
    let (mut it, now) = connected();
    for ms in [0, 2_500, 5_000] {
        assert!(!it.saw(Seen::Refused(refusal("LOADING")), now + ms * MS).cut);
        assert_eq!(it.dial_at(), None, "{ms} ms");
    }
    it.saw(Seen::Refused(refusal("LOADING")), now + 5_001 * MS);
    assert!(it.dial_at().is_some());
}

#[test]
fn what_a_new_connection_cannot_mend_makes_none() {
    for code in ["OOM", "NOPERM", "MISCONF", "CLUSTERDOWN", "NOAUTH", "ERR", "WRONGTYPE", "MOVED"] {
        let (mut it, now) = connected();
        for n in 0..20 {
            let orders = it.saw(Seen::Refused(refusal(code)), now + n * 1000 * MS);
            assert!(!orders.cut && it.dial_at().is_none(), "{code}");
            assert_eq!(orders.change.is_some(), n == 0, "{code}");
        }
    }
}

fn begun(now: Instant) -> Supervisor {
    Supervisor::new(now, Seed::new(7).stream(0))
}

fn connected() -> (Supervisor, Instant) {
    let now = Instant::now();
    let mut it = begun(now);
    it.dialling();
    it.saw(Seen::Connected, now);
    it.saw(Seen::Answered, now);
    (it, now)
}

/// As the parser reads it off the wire.
fn refusal(code: &str) -> Refusal {
    match redis::parse_redis_value(format!("-{code} some words\r\n").as_bytes()) {
        Ok(Value::ServerError(error)) => Refusal::new(&error),
        other => unreachable!("{other:?}"),
    }
}
