use super::super::{Message, PoolCore, Terms};
use super::terms;

const SECOND: u64 = 1_000_000;
const TOKEN: u64 = 1_000_000;

fn deposit(tokens: u64) -> Message {
    Message { deposit: tokens * TOKEN, ..Message::default() }
}

fn want(tokens: u64) -> Message {
    Message { want: tokens, ..Message::default() }
}

#[test]
fn a_pool_begins_with_a_second_of_its_floor() {
    let mut pool = PoolCore::default();
    let reply = pool.exchange(&terms(10.0), SECOND, &Message::default());
    assert_eq!((reply.stock, reply.processes, reply.grant), (10 * TOKEN, 1, 0));
    pool.forget();
    let again = pool.exchange(&terms(10.0), 2 * SECOND, &Message::default());
    assert_ne!(again.generation, reply.generation);
}

#[test]
fn what_is_handed_over_fades_with_the_time_constant() {
    let (terms, mut pool) = (terms(0.0), PoolCore::default());
    pool.exchange(&terms, SECOND, &deposit(1_000));
    let reply = pool.exchange(&terms, 11 * SECOND, &Message::default());
    assert!((reply.stock as f64 / 370e6 - 1.0).abs() < 0.01, "{}", reply.stock);
}

#[test]
fn grants_are_whole_and_leave_something_for_the_next() {
    let (terms, mut pool) = (terms(1e4), PoolCore::default());
    pool.exchange(&terms, SECOND, &Message { deposit: 500_000, ..Message::default() });
    for process in 2..40 {
        let before = pool.state().map_or(0, |state| state.stock);
        let join = Message { want: u64::MAX, epoch: process, ..Message::default() };
        let reply = pool.exchange(&terms, SECOND, &join);
        assert_eq!(reply.stock, before - reply.grant * TOKEN);
        assert!(reply.grant * TOKEN <= (before / 8).max(before / reply.processes), "{reply:?}");
    }
}

#[test]
fn what_is_sent_keeps_the_pace() {
    let (terms, mut pool) = (terms(10.0), PoolCore::default());
    pool.exchange(&terms, SECOND, &deposit(10_000));
    let mut granted = 0;
    for step in 0..600 {
        let now = SECOND + step * SECOND / 20;
        let reply = pool.exchange(&terms, now, &want(100));
        let last = reply.first + reply.grant.saturating_sub(1) * reply.gap;
        assert!(reply.grant == 0 || last <= SECOND, "{reply:?}");
        granted += reply.grant;
    }
    // Ten a second for thirty seconds, a second ahead, and one at once.
    assert!((300..=311).contains(&granted), "{granted}");
}

#[test]
fn the_pace_follows_three_quarters_of_the_ratio_of_all_calls() {
    let (terms, mut pool) = (terms(0.0), PoolCore::default());
    for step in 0..60 {
        let told = Message { calls: 1_000 * TOKEN, ..deposit(500) };
        pool.exchange(&terms, step * SECOND, &told);
    }
    let mut granted = 0;
    for step in 0..20 {
        let now = 59 * SECOND + step * SECOND / 20;
        let told = Message { want: 50, calls: 50 * TOKEN, ..Message::default() };
        granted += pool.exchange(&terms, now, &told).grant;
    }
    // 1,000 calls/s × .2 × .75, for one second and one ahead.
    assert!((280..=360).contains(&granted), "{granted}");
}

#[test]
fn processes_are_counted_once_in_ten_seconds_and_forgotten_after_twenty() {
    let (terms, mut pool) = (terms(1.0), PoolCore::default());
    let mut known = vec![(0, 0); 50];
    for second in 0..30 {
        for (generation, epoch) in &mut known {
            let told = Message { generation: *generation, epoch: *epoch, ..Message::default() };
            let reply = pool.exchange(&terms, (100 + second) * SECOND, &told);
            (*generation, *epoch) = (reply.generation, reply.epoch);
        }
        assert_eq!(pool.state().map(|s| s.counted.max(s.before)), Some(50), "{second}");
    }
    let (generation, epoch) = known[0];
    let told = |epoch| Message { generation, epoch, ..Message::default() };
    let next = pool.exchange(&terms, 131 * SECOND, &told(epoch));
    assert_eq!(next.processes, 50, "the count before still holds");
    let after = pool.exchange(&terms, 141 * SECOND, &told(next.epoch));
    assert_eq!(after.processes, 1);
}

// BU-09, FL-03
#[test]
fn a_clock_that_jumps_neither_freezes_nor_enriches_it() {
    let (terms, mut pool) = (terms(10.0), PoolCore::default());
    pool.exchange(&terms, 1_000 * SECOND, &deposit(100));
    let back = pool.exchange(&terms, 400 * SECOND, &Message::default());
    assert_eq!(back.stock, 110 * TOKEN, "no time has passed");
    let on = pool.exchange(&terms, 401 * SECOND, &Message::default());
    assert!(on.stock < 110 * TOKEN, "time goes on from there: {}", on.stock);
    let forward = pool.exchange(&terms, 440 * SECOND, &Message::default());
    assert!(forward.stock <= on.stock + 100 * TOKEN, "{}", forward.stock);
    let far = pool.exchange(&terms, 1_000_000 * SECOND, &Message::default());
    assert_eq!(far.stock, 10 * TOKEN, "forgotten, and begun anew");
}

#[test]
fn whatever_a_message_says_nothing_overflows() {
    let (terms, mut pool) = (terms(1e6), PoolCore::default());
    let most = Message {
        number: u64::MAX,
        deposit: u64::MAX,
        calls: u64::MAX,
        want: u64::MAX,
        generation: u64::MAX,
        epoch: u64::MAX,
    };
    for now in [0, 1, SECOND, u64::MAX / 2, u64::MAX, 0, 5 * SECOND] {
        let reply = pool.exchange(&terms, now, &most);
        assert!(reply.stock < 1 << 53 && reply.first < 1 << 53, "{reply:?}");
    }
}

#[test]
fn terms_that_cannot_be_kept_are_refused() {
    for floor in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
        assert!(Terms::new(crate::ratio::Ratio::ZERO, floor).is_err(), "{floor}");
    }
    let error = terms(1.0).with_interval(super::ms(2_001)).unwrap_err();
    assert_eq!(error.to_string(), "fleet.interval: 2.001s is not from 100ms to 2s");
    assert!(terms(1.0).with_interval(super::ms(2_000)).is_ok());
}
