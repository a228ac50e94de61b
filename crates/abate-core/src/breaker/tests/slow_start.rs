//! How traffic comes back after closing.

use super::*;

/// The rule, written down once more: admitted while this is above zero.
#[derive(Default)]
struct Room {
    successes: i64,
    failures: i64,
    in_flight: i64,
}

impl Room {
    fn left(&self) -> i64 {
        3 + self.successes - self.failures - self.in_flight
    }
}

#[test]
fn calls_are_admitted_as_fast_as_answers_come() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut rig = Rig::slow_start();
        let (mut room, mut held) = (Room::default(), Vec::new());
        for _ in 0..200 {
            // Faster than any calm could end it.
            rig.wait(0.003);
            if dice.roll(2) == 0 {
                let answer = rig.ask();
                assert_eq!(answer.is_ok(), room.left() > 0, "seed {seed}");
                match answer {
                    Ok(admitted) => {
                        held.push(admitted.permit);
                        room.in_flight += 1;
                    }
                    Err(refused) => {
                        assert_eq!((refused.retry_at, refused.transition), (None, None))
                    }
                }
            } else if let Some(permit) = held.pop() {
                room.in_flight -= 1;
                let health = match dice.roll(8) {
                    0..3 => Health::Success,
                    3 => Health::Answered,
                    4 => Health::Unknown,
                    5 => {
                        drop(permit);
                        continue;
                    }
                    _ => Health::Failure,
                };
                match health {
                    Health::Success | Health::Answered => room.successes += 1,
                    Health::Failure => room.failures += 1,
                    Health::Unknown => {}
                }
                let opened = rig.end(permit, health).is_some();
                assert_eq!(opened, room.failures == room.successes + 3, "seed {seed}");
                if opened {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_dependency_that_answers_gets_its_traffic_back() {
    let mut rig = Rig::slow_start();
    let mut admitted = 0;
    for _ in 0..8 {
        let wave = rig.wave();
        admitted = wave.len();
        rig.wait(0.1);
        for permit in wave {
            assert_eq!(rig.end(permit, Health::Success), None);
        }
    }
    assert_eq!(admitted, 3 << 7, "twice as many in each round");
}

#[test]
fn it_opens_again_when_failures_reach_successes_and_probes() {
    let rig = Rig::slow_start();
    rig.calls(2, Health::Failure);
    assert_eq!(rig.call(Health::Failure).unwrap().to, State::Open);

    let rig = Rig::slow_start();
    rig.calls(20, Health::Success);
    rig.calls(22, Health::Failure);
    assert_eq!(rig.call(Health::Failure).unwrap().to, State::Open);
}

#[test]
fn an_answer_of_any_kind_is_a_success_here() {
    let rig = Rig::slow_start();
    rig.calls(5, Health::Answered);
    rig.calls(50, Health::Unknown);
    assert_eq!(rig.wave().len(), 8);
}

#[test]
fn a_body_that_breaks_is_a_failure_here_too() {
    let rig = Rig::slow_start();
    let tails = [(); 3].map(|()| rig.end_with_body(rig.admitted(), Health::Success));
    assert!(tails.map(|tail| tail.broke(rig.now)).iter().all(Option::is_none));
    rig.calls(2, Health::Failure);
    assert_eq!(rig.call(Health::Failure).unwrap().to, State::Open, "six, and three succeeded");

    let rig = Rig::slow_start();
    let tail = rig.end_with_body(rig.admitted(), Health::Answered);
    rig.calls(3, Health::Failure);
    assert_eq!(tail.broke(rig.now).unwrap().to, State::Open);
}

/// A streak opens it although many more have succeeded.
#[test]
fn the_ordinary_rules_hold_here_too() {
    let mut rig = Rig::slow_start();
    rig.calls(500, Health::Success);
    let mut held = rig.wave();
    assert_eq!(held.len(), 503);
    for _ in 0..9 {
        assert_eq!(rig.end(held.pop().unwrap(), Health::Failure), None);
        rig.wait(0.25);
        // Refused, so that slow start goes on.
        rig.refused();
    }
    assert_eq!(rig.end(held.pop().unwrap(), Health::Failure).unwrap().to, State::Open);
}

fn is_slow_start(rig: &Rig) -> bool {
    rig.wave().len() < 10_000
}

#[test]
fn it_ends_a_second_after_closing_if_nobody_was_refused() {
    let mut rig = Rig::slow_start();
    rig.wait(0.999);
    assert!(is_slow_start(&rig));
    let mut rig = Rig::slow_start();
    rig.wait(1.0);
    assert!(!is_slow_start(&rig));
}

#[test]
fn it_ends_a_second_after_the_last_refusal() {
    let mut rig = Rig::slow_start();
    let _held = [rig.admitted(), rig.admitted(), rig.admitted()];
    for _ in 0..5 {
        rig.wait(0.999);
        rig.refused();
    }
    rig.wait(1.0);
    assert!(!is_slow_start(&rig));
}

#[test]
fn it_ends_when_hung_calls_must_have_failed() {
    for (timeout, longest) in
        [(None, 11.0), (Some(seconds(3.0)), 11.0), (Some(seconds(20.0)), 21.0)]
    {
        let rules = Rules { attempt_timeout: timeout, ..Rules::default() };
        let mut rig = Rig::slow_start_with(rules);
        let _held = [rig.admitted(), rig.admitted(), rig.admitted()];
        for _ in 0..2 * longest as u32 {
            rig.refused();
            rig.wait(0.5);
        }
        assert!(!is_slow_start(&rig), "{longest} s are over");
    }
}

#[test]
fn calls_that_outlive_it_are_ordinary() {
    let mut rig = Rig::slow_start();
    let mut held = vec![rig.admitted(), rig.admitted(), rig.admitted()];
    rig.wait(1.0);
    assert!(!is_slow_start(&rig));
    for permit in held.drain(..) {
        assert_eq!(rig.end(permit, Health::Failure), None, "three are no evidence any more");
    }
    assert_eq!(rig.state(), State::Closed);
}

#[test]
fn only_its_end_resets_the_open_time() {
    let mut rig = Rig::open();
    for _ in 2..=6 {
        rig.wait_until_due();
        rig.reopen();
    }
    rig.wait_until_due();
    rig.close();
    rig.calls(2, Health::Failure);
    let open_for = rig.call(Health::Failure).and_then(|it| it.open_for).unwrap();
    assert!(
        open_for > seconds(8.0) - Duration::from_nanos(1),
        "the seventh in a row: {open_for:?}"
    );

    rig.wait_until_due();
    rig.close();
    rig.wait(1.0);
    rig.call(Health::Success);
    let open_for = rig.trip().open_for.unwrap();
    assert!(open_for <= seconds(2.0), "the first again: {open_for:?}");
}
