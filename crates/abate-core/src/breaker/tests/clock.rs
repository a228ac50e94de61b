//! Clock readings of all kinds, and sequences of all kinds: it never panics and never wedges.

use proptest::prelude::*;

use super::*;

const YEAR: u64 = 365 * 86_400;

#[test]
fn readings_from_before_do_no_harm_in_any_state() {
    let back = [0.0, 0.001, 0.6, 5.5, 3_600.0];
    let states: [fn() -> Rig; 4] = [Rig::new, Rig::open, Rig::due, Rig::slow_start];
    for new in states {
        for back in back {
            let mut rig = new();
            rig.wait(1.0);
            let (now, earlier) = (rig.now, rig.now.checked_sub(seconds(back)).unwrap());
            for health in [Health::Success, Health::Failure, Health::Answered, Health::Unknown] {
                for (asked, ended) in [(now, earlier), (earlier, now), (earlier, earlier)] {
                    let Ok(admitted) = rig.breaker.admit(asked) else { continue };
                    let (tail, _) = admitted.permit.record(health, ended, ended);
                    tail.and_then(|tail| tail.broke(earlier));
                    if let Ok(admitted) = rig.breaker.admit(asked) {
                        admitted.permit.cancelled(now, earlier);
                    }
                }
            }
        }
    }
}

// BU-09
#[test]
fn a_reading_from_before_reopens_nothing_early_and_keeps_nothing_open_for_longer() {
    let mut rig = Rig::open();
    let reopens = rig.refused().retry_at.unwrap();
    assert!(rig.breaker.admit(rig.now - seconds(3_600.0)).is_err());
    rig.now = reopens;
    assert!(rig.ask().is_ok());
    assert!(rig.breaker.admit(reopens - seconds(3_600.0)).is_ok(), "half-open for everyone");
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Ask,
    Record(usize, Health),
    Drop(usize),
    Cancel(usize, u64),
    Break(usize),
    Wait(u64),
    Back(u64),
}

fn step() -> impl Strategy<Value = Step> {
    use Health::{Answered, Failure, Success, Unknown};
    let health = prop_oneof![3 => Just(Success), 5 => Just(Failure), 1 => Just(Answered), 1 => Just(Unknown)];
    let millis = prop_oneof![
        6 => 0_u64..600,
        3 => 0_u64..15_000,
        1 => 0_u64..50 * YEAR * 1_000,
    ];
    prop_oneof![
        8 => Just(Step::Ask),
        8 => (any::<usize>(), health).prop_map(|(which, health)| Step::Record(which, health)),
        1 => any::<usize>().prop_map(Step::Drop),
        1 => (any::<usize>(), 0_u64..12_000).prop_map(|(which, sent)| Step::Cancel(which, sent)),
        2 => any::<usize>().prop_map(Step::Break),
        4 => millis.prop_map(Step::Wait),
        1 => (0_u64..15_000).prop_map(Step::Back),
    ]
}

fn pick<T>(from: &mut Vec<T>, which: usize) -> Option<T> {
    let len = from.len();
    (len > 0).then(|| from.swap_remove(which % len))
}

proptest! {
    #[test]
    fn no_sequence_makes_it_panic_or_wedges_it(
        trip in any::<bool>(),
        steps in proptest::collection::vec(step(), 0..150),
    ) {
        let mut rig = if trip { Rig::due() } else { Rig::new() };
        let (mut latest, mut generation) = (rig.now, 0);
        let (mut permits, mut tails) = (Vec::new(), Vec::new());
        for step in steps {
            let changed = match step {
                Step::Ask => match rig.ask() {
                    Ok(admitted) => {
                        permits.push(admitted.permit);
                        admitted.transition
                    }
                    Err(refused) => {
                        let open = rig.state() == State::Open;
                        prop_assert_eq!(refused.retry_at.is_some(), open);
                        refused.transition
                    }
                },
                Step::Record(which, health) => pick(&mut permits, which).and_then(|permit| {
                    let (tail, transition) = permit.record(health, rig.now, rig.now);
                    tails.extend(tail);
                    transition
                }),
                Step::Drop(which) => {
                    pick(&mut permits, which);
                    None
                }
                Step::Cancel(which, sent) => pick(&mut permits, which)
                    .and_then(|it| it.cancelled(rig.now - Duration::from_millis(sent), rig.now)),
                Step::Break(which) => pick(&mut tails, which).and_then(|tail| tail.broke(rig.now)),
                Step::Wait(millis) => {
                    rig.now += Duration::from_millis(millis);
                    None
                }
                Step::Back(millis) => {
                    rig.now -= Duration::from_millis(millis);
                    None
                }
            };
            latest = latest.max(rig.now);
            if let Some(changed) = changed {
                prop_assert_eq!(changed.to, rig.state());
                prop_assert_ne!(changed.from, changed.to);
                prop_assert_eq!(changed.open_for.is_some(), changed.to == State::Open);
                prop_assert!(rig.breaker.generation() > generation);
            }
            generation = rig.breaker.generation();
        }
        // From here on the dependency is well; those still held are never heard of again.
        rig.now = latest;
        let mut successes = 0;
        for _ in 0..200 {
            rig.wait(0.5);
            if let Ok(admitted) = rig.ask() {
                rig.end(admitted.permit, Health::Success);
                successes += 1;
            }
        }
        prop_assert_eq!(rig.state(), State::Closed);
        prop_assert!(successes > 100, "{} of 200 calls let through", successes);
    }
}
