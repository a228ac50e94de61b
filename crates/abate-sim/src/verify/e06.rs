//! E6, a peak that passes and a collapse that stays ("Fixing retries with token buckets and circuit
//! breakers", M. Brooker, 2022).
//!
//! A server takes a second, and 10 ms more for each other request in work; the way takes 100 ms in the
//! mean, there and back. Clients wait three seconds, leave their request behind, and try three times in all.
//! Load climbs from 40 calls a second to 80 within 25 seconds, and falls by the same slope.
//! A spike to 80 calls a second for five seconds is told beside it.

use std::ops::Range;
use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};
use abate_core::policy::Policy;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{bucket, built, limited, mean, model, ms, open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Model, Network, Rate, Server};
use crate::record::{Bin, Run};

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E6", title: "a peak of load, and what stays of it", runs: 14 * SEEDS, run };

const SEEDS: u64 = 10;
const TIMEOUT: Duration = s(3);
const LENGTH: Duration = s(60);
/// The seconds after the peak in which successes are counted.
const AFTER: Range<usize> = 40..60;
/// The last of them, in which all should be well.
const LAST: Range<usize> = 55..60;
const TOLERANCE: f64 = 0.15;
const UNIT: &str = "calls/s";

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let (ramp, spike) = (ramp(), spike());
    let mut lines = Vec::new();
    for (name, conduct, expected) in cases() {
        let got = after(&runs(crew, &ramp, &conduct));
        let what = format!("ramp, {name}: successes");
        lines.push(Line::within(what, got, expected, TOLERANCE).in_units(UNIT));
        let got = after(&runs(crew, &spike, &conduct));
        lines.push(Line::reported(format!("spike, {name}: successes"), got).in_units(UNIT));
    }
    let stack = Conduct::stack(built(Policy::builder().with_attempt_timeout(TIMEOUT)));
    let ours = runs(crew, &ramp, &stack);
    lines.push(Line::at_least("ramp, ours: successes", after(&ours), 40.0).in_units(UNIT));
    let well = mean(ours.iter().map(well));
    lines.push(Line::at_least("ramp, ours: share of calls that end well by 60 s", well, 0.99));
    let got = after(&runs(crew, &spike, &stack));
    lines.push(Line::reported("spike, ours: successes", got).in_units(UNIT));
    lines
}

/// Who calls, and what comes of it after the ramp.
fn cases() -> [(&'static str, Conduct, f64); 6] {
    let tries = |attempts| plain(attempts, Some(TIMEOUT), Backoff::NONE);
    let paid = |payment| Conduct { payment, ..tries(3) };
    let jitter = Backoff {
        base: s(20),
        curve: Curve::Exponential { factor: 2.0 },
        cap: s(40),
        jitter: Jitter::Full,
    };
    [
        ("one try", tries(1), 37.0),
        ("three tries", tries(3), 0.0),
        ("three tries, jitter", plain(3, Some(TIMEOUT), jitter), 0.0),
        ("a tenth of calls", paid(bucket(false)), 24.5),
        ("a tenth of successes", paid(bucket(true)), 34.4),
        ("limit 120", limited(3, TIMEOUT, 120), 43.2),
    ]
}

fn ramp() -> Rate {
    Rate::through(vec![(s(0), 40.0), (s(25), 80.0), (s(75), 0.0)])
}

fn spike() -> Rate {
    Rate::through(vec![(s(20), 40.0), (s(20), 80.0), (s(25), 80.0), (s(25), 40.0)])
}

fn runs(crew: &Crew<'_>, rate: &Rate, conduct: &Conduct) -> Vec<Run> {
    let world = world(rate.clone(), conduct.clone());
    crew.each(SEEDS, |seed| crate::run(&world, seed))
}

fn world(rate: Rate, conduct: Conduct) -> Model {
    let mut server = Server::new(Law::Constant(s(1)));
    server.slower_by = ms(10);
    let mut group = open(0.0, conduct);
    group.arrivals = Arrivals::Poisson(rate);
    group.network = Network { delay: Law::Exponential(ms(100)), loss: 0.0 };
    model(LENGTH, group, server, vec![])
}

/// Calls that end well, per second after the peak.
fn after(runs: &[Run]) -> f64 {
    mean(runs.iter().flat_map(|run| bins(run, AFTER)).map(|bin| f64::from(bin.succeeded)))
}

/// The share of the last calls that end well. Of those that end, for as load falls more end than begin.
fn well(run: &Run) -> f64 {
    let succeeded: u32 = bins(run, LAST).iter().map(|bin| bin.succeeded).sum();
    let failed: u32 = bins(run, LAST).iter().map(|bin| bin.failed).sum();
    f64::from(succeeded) / f64::from(succeeded + failed)
}

fn bins(run: &Run, seconds: Range<usize>) -> &[Bin] {
    run.bins.get(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_has_its_peak_and_its_slope() {
        let ramp = ramp();
        assert_eq!(ramp.peak(), 80.0);
        for (at, rate) in [(0, 40.0), (5, 48.0), (25, 80.0), (30, 72.0), (60, 24.0)] {
            assert!((ramp.at(s(at)) - rate).abs() < 1e-9, "{at} s: {}", ramp.at(s(at)));
        }
    }

    #[test]
    fn three_tries_stay_down_where_one_comes_back() {
        let well_with = |attempts| {
            let conduct = plain(attempts, Some(TIMEOUT), Backoff::NONE);
            well(&crate::run(&world(ramp(), conduct), 1))
        };
        assert_eq!(well_with(1), 1.0);
        assert_eq!(well_with(3), 0.0);
    }
}
