//! Runs made up for the tests: a dependency that answers 18 times slower from 60 s to 120 s, with 1,000
//! calls per second.

use super::comparison::{Comparison, Grid, Map};
use crate::record::{Attempts, Bin, Run, Trouble};
use std::time::Duration;

const CALLS: u32 = 1_000;
const CAPACITY: f64 = 1_200.0;
const FROM: usize = 60;
const TO: usize = 120;

/// Three policies, so many seconds each, and a map.
pub(super) fn comparison(seconds: usize) -> Comparison {
    Comparison {
        title: "slow-dependency".to_owned(),
        scenario: "1,000 calls per second to a dependency that can answer 1,200; from 60 s to 120 s it takes 18 times as long.".to_owned(),
        runs: vec![one_try(seconds), storm(seconds), budgeted(seconds)],
        map: Some(map()),
    }
}

/// No retries: fails while the dependency does.
pub(super) fn one_try(seconds: usize) -> Run {
    run("one try", seconds, |second| {
        let slow = (FROM..TO + 4).contains(&second);
        let succeeded = if slow { 66 + wobble(second, 9) } else { CALLS - wobble(second, 3) };
        Bin {
            succeeded,
            queue: if slow { 3_000 + wobble(second, 200) } else { 0 },
            ..healthy(slow)
        }
    })
}

/// Retries at once: four more attempts keep the dependency down when it could do it all again.
pub(super) fn storm(seconds: usize) -> Run {
    let mut run = run("retry at once", seconds, |second| {
        let slow = second >= FROM;
        let grown = u32::try_from(second.saturating_sub(FROM) * 250).unwrap_or(u32::MAX).min(3_900);
        let retries = if slow { grown + wobble(second, 160) } else { wobble(second, 5) };
        let succeeded = if slow { 24 + wobble(second, 14) } else { CALLS };
        Bin {
            retries,
            succeeded,
            queue: if slow { 3 * grown + wobble(second, 500) } else { 0 },
            wasted: if slow { 1_100 } else { 0 },
            ..healthy(slow)
        }
    });
    run.attempts = [0.31, 0.02, 0.012, 0.008, 0.005].map(|share| sent(run.calls, share)).to_vec();
    run
}

/// The default: a budget, and a breaker that lets the dependency breathe.
pub(super) fn budgeted(seconds: usize) -> Run {
    let mut run = run("default", seconds, |second| {
        let slow = (FROM..TO + 2).contains(&second);
        let succeeded = if slow { 60 + wobble(second, 20) } else { CALLS };
        let probing = slow && second % 10 == 0;
        Bin {
            first: if slow && !probing { 80 } else { CALLS },
            retries: if second == FROM { 190 } else { wobble(second, 4) },
            succeeded,
            queue: if slow { 60 + wobble(second, 40) } else { 0 },
            refused_by_breaker: if slow && !probing { 920 } else { 0 },
            denied_by_budget: if slow { 30 + wobble(second, 30) } else { 0 },
            refused_by_limit: if probing { 140 } else { 0 },
            in_use: if probing { 160 } else { 52 + wobble(second, 9) },
            breakers_open: if slow { 18 + wobble(second, 3) } else { 0 },
            ..healthy(slow)
        }
    });
    run.budget_ratio = Some(0.2);
    run.attempts = [0.8, 0.4, 0.2].map(|share| sent(run.calls, share)).to_vec();
    run
}

/// Makes no two neighbours of any count equal.
pub(super) fn shake(run: &mut Run) {
    for (at, bin) in run.bins.iter_mut().enumerate() {
        let noise = |salt: usize| wobble(7 * at + salt, 900);
        bin.first = 100 + noise(1);
        bin.retries = noise(2);
        bin.calls = 1_000 + noise(3);
        bin.succeeded = noise(4);
        bin.queue = noise(5);
        bin.refused_by_breaker = noise(6);
        bin.refused_by_limit = noise(7);
        bin.denied_by_budget = noise(8);
        bin.wasted = noise(9);
        bin.breakers_open = noise(10);
        bin.p50 = Some(Duration::from_millis(1 + u64::from(noise(11))));
        bin.p99 = Some(Duration::from_millis(1_000 + u64::from(noise(12))));
    }
}

fn healthy(slow: bool) -> Bin {
    let millis = |fast, slowly| Duration::from_millis(if slow { slowly } else { fast });
    Bin {
        calls: CALLS,
        first: CALLS,
        p50: Some(millis(50, 1_900)),
        p99: Some(millis(92, 9_700)),
        busy: 60,
        ..Bin::default()
    }
}

fn run(name: &str, seconds: usize, bin: impl Fn(usize) -> Bin) -> Run {
    let slow = |second| (FROM..TO).contains(&second);
    let bin = |second| {
        let Bin { calls, succeeded, .. } = bin(second);
        let capacity = Some(if slow(second) { CAPACITY / 18.0 } else { CAPACITY });
        Bin { failed: calls.saturating_sub(succeeded), capacity, ..bin(second) }
    };
    let bins: Vec<Bin> = (0..seconds).map(bin).collect();
    let total = |count: fn(&Bin) -> u32| bins.iter().map(|bin| u64::from(count(bin))).sum::<u64>();
    let (calls, succeeded) = (total(|bin| bin.calls), total(|bin| bin.succeeded));
    let sent = total(|bin| bin.first) + total(|bin| bin.retries);
    let failed = calls - succeeded;
    // Most are fast, some waited. Of long runs there would be too many for a test.
    let hundreds = if seconds > 600 { 0 } else { succeeded / 100 };
    let times = (0..hundreds).map(|nth| {
        let share = nth as f64 / hundreds as f64;
        Duration::from_secs_f64(0.03 * libm::pow(1.0 - share, -0.8).min(200.0))
    });
    Run {
        name: name.to_owned(),
        seed: 7,
        step: Duration::from_secs(1),
        faults: vec![Trouble {
            from: Duration::from_secs(FROM as u64),
            to: Duration::from_secs(TO as u64),
            what: "slow ×18".to_owned(),
        }],
        attempts: vec![Attempts { sent: calls, succeeded }],
        times_to_success: times.flat_map(|time| [time; 100]).collect(),
        calls,
        succeeded,
        failed,
        sent,
        endings: vec![("timed out", failed - failed / 4), ("status 503", failed / 4)],
        events: 3 * sent,
        trace: 0x5ca1_ab1e_0ddb_a115,
        bins,
        ..Run::default()
    }
}

fn map() -> Map {
    let seconds = |cells: [u64; 5]| {
        cells.map(|cell| (cell < 999).then(|| Duration::from_secs(cell))).to_vec()
    };
    let grid = |name: &str, rows: [[u64; 5]; 4]| Grid {
        name: name.to_owned(),
        recovery: rows.map(seconds).to_vec(),
    };
    Map {
        loads: vec![0.3, 0.5, 0.7, 0.8, 0.9],
        outages: [1, 5, 10, 60].map(Duration::from_secs).to_vec(),
        policies: vec![
            grid(
                "one try",
                [[0, 1, 2, 4, 9], [2, 4, 9, 21, 60], [4, 9, 21, 40, 123], [9, 40, 90, 180, 400]],
            ),
            grid(
                "retry at once",
                [
                    [1, 3, 30, 999, 999],
                    [4, 40, 999, 999, 999],
                    [9, 999, 999, 999, 999],
                    [60, 999, 999, 999, 999],
                ],
            ),
            grid("default", [[0, 0, 1, 2, 2], [1, 2, 2, 3, 4], [2, 2, 3, 4, 4], [2, 3, 3, 4, 6]]),
        ],
    }
}

fn sent(calls: u64, share: f64) -> Attempts {
    let sent = (calls as f64 * (0.3 + share)) as u64;
    Attempts { sent, succeeded: (sent as f64 * share) as u64 }
}

/// A little noise, the same each time.
fn wobble(second: usize, most: u32) -> u32 {
    let hash = (second as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (hash % u64::from(most)) as u32
}
