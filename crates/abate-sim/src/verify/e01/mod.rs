//! E1, contention ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
//!
//! Clients that all want one optimistic write on one row: read its version, write with it, and begin
//! again after a wait if it was stale. Each way of the network takes a normal 10 ± 2 ms. Who does not
//! wait at all is done first: jitter is an argument about the work that a dependency is spared.
//!
//! The published decorrelated jitter cuts a wait to the cap after it is drawn, so that late waits line up
//! there; the shipped one cuts the range before. The first is judged by the published figures, the
//! second is told.

mod row;

use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};

use self::row::{Outcome, Waits, contest};
use super::experiment::Experiment;
use super::line::Line;
use super::parts::{mean, ms};
use crate::Crew;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E1", title: "one row that everybody writes", runs: 24 * REPETITIONS, run };

const REPETITIONS: u64 = 100;
const BASE: Duration = ms(5);
const CAP: Duration = ms(2000);
const CLIENTS: [u32; 4] = [10, 50, 100, 190];

/// A schedule, and what it comes to by number of clients: the time until the last has written, in
/// milliseconds, and the writes that were tried.
struct Case {
    name: &'static str,
    waits: Waits,
    tolerance: f64,
    expected: [(f64, f64); CLIENTS.len()],
}

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for case in cases() {
        for (clients, (time, writes)) in CLIENTS.into_iter().zip(case.expected) {
            let name = format!("{clients} clients, {}", case.name);
            let got = contests(crew, clients, case.waits);
            let line = Line::within(format!("{name}: time"), got.took, time, case.tolerance);
            lines.push(line.in_units("ms"));
            lines.push(Line::within(format!("{name}: writes"), got.writes, writes, 0.03));
        }
    }
    for clients in CLIENTS {
        let name = format!("{clients} clients, decorrelated as shipped");
        let got = contests(crew, clients, Waits { backoff: decorrelated(CAP), cut: CAP });
        lines.push(Line::reported(format!("{name}: time"), got.took).in_units("ms"));
        lines.push(Line::reported(format!("{name}: writes"), got.writes));
    }
    lines
}

/// The mean of all repetitions.
fn contests(crew: &Crew<'_>, clients: u32, waits: Waits) -> Outcome {
    let outcomes = crew.each(REPETITIONS, |seed| contest(clients, waits, seed));
    Outcome {
        took: mean(outcomes.iter().map(|outcome| outcome.took)),
        writes: mean(outcomes.iter().map(|outcome| outcome.writes)),
    }
}

fn cases() -> [Case; 5] {
    let capped = |backoff| Waits { backoff, cut: CAP };
    [
        Case {
            name: "exponential",
            waits: capped(doubling(Jitter::None)),
            tolerance: 0.15,
            expected: [(3677.0, 51.5), (36_788.0, 626.5), (63_697.0, 1859.0), (101_541.0, 5178.0)],
        },
        Case {
            name: "decorrelated",
            waits: capped(decorrelated(Duration::MAX)),
            tolerance: 0.1,
            expected: [(430.0, 37.4), (2210.0, 374.6), (4594.0, 1004.0), (7849.0, 2428.0)],
        },
        Case {
            name: "equal jitter",
            waits: capped(doubling(Jitter::Equal)),
            tolerance: 0.1,
            expected: [(706.0, 42.4), (4309.0, 346.9), (6541.0, 812.0), (9351.0, 1757.0)],
        },
        Case {
            name: "full jitter",
            waits: capped(doubling(Jitter::Full)),
            tolerance: 0.1,
            expected: [(475.0, 39.1), (2885.0, 332.9), (4955.0, 797.0), (7405.0, 1773.0)],
        },
        Case {
            name: "no wait",
            waits: capped(Backoff::NONE),
            tolerance: 0.1,
            expected: [(376.0, 50.4), (1141.0, 689.3), (2018.0, 2418.0), (3540.0, 8008.0)],
        },
    ]
}

/// Doubles before each wait, the first included.
const fn doubling(jitter: Jitter) -> Backoff {
    Backoff { base: ms(10), curve: Curve::Exponential { factor: 2.0 }, cap: CAP, jitter }
}

const fn decorrelated(cap: Duration) -> Backoff {
    Backoff { base: BASE, curve: Curve::Fixed, cap, jitter: Jitter::Decorrelated }
}
