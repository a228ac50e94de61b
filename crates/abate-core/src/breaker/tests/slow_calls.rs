//! The slow-call rate, which is off unless set.

use super::*;
use crate::ratio::Ratio;

const SLOW: Duration = Duration::from_secs(1);

fn rules(rate: f64) -> Rules {
    Rules { slow_calls: Some((SLOW, Ratio::new(rate).unwrap())), ..Rules::default() }
}

impl Rig {
    /// A call that takes `took` and ends with `health` now.
    #[track_caller]
    fn took(&self, took: Duration, health: Health) -> Option<Transition> {
        self.admitted().record(health, self.now.checked_sub(took).unwrap(), self.now).1
    }
}

/// One in `every` is slow, ten a second, for a minute; whether it opens.
fn opens(mut rig: Rig, every: u32) -> bool {
    for n in 0..600 {
        let took = if n % every == 0 { SLOW } else { SLOW / 2 };
        if rig.took(took, Health::Success).is_some() {
            return true;
        }
        rig.wait(0.1);
    }
    false
}

#[test]
fn too_many_slow_successes_open_it() {
    assert!(opens(Rig::with(rules(0.5)), 1));
    assert!(opens(Rig::with(rules(0.25)), 2));
    assert!(!opens(Rig::with(rules(0.5)), 2), "a half is not above a half");
    assert!(!opens(Rig::with(rules(0.5)), 3));
}

#[test]
fn without_the_setting_no_success_is_slow() {
    assert!(!opens(Rig::new(), 1));
}

#[test]
fn the_threshold_itself_is_slow() {
    let mut rig = Rig::with(rules(0.5));
    let just_below = SLOW.checked_sub(Duration::from_nanos(1)).unwrap();
    for _ in 0..100 {
        assert_eq!(rig.took(just_below, Health::Success), None);
        rig.wait(0.1);
    }
    assert!(opens(rig, 1));
}

#[test]
fn slow_probes_open_it_again() {
    let rig = Rig::due_with(rules(0.5));
    assert_eq!(rig.took(SLOW, Health::Success), None);
    assert_eq!(rig.took(SLOW, Health::Success).map(|it| it.to), Some(State::Open));
}

#[test]
fn a_caller_that_gives_up_on_a_slow_call_counts_as_a_failure() {
    let mut rig = Rig::with(rules(0.5));
    let mut opened = false;
    for _ in 0..20 {
        let permit = rig.admitted();
        let sent = rig.now;
        rig.wait(1.0);
        opened |= permit.cancelled(sent, rig.now).is_some();
        if opened {
            break;
        }
    }
    assert!(opened);
}
