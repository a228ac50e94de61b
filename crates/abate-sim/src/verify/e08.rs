//! E8, four panels of one storm ("Metastable Failures in the Wild", OSDI 2022): how deep a dependency is cut
//! and for how long decides whether it comes back.
//!
//! Fifty workers of 50 ms behind a queue without bound, calls at random at 37 % of what they can do, each
//! of which waits three seconds for its answer, leaves its request behind, and sends it four times more at
//! once. A minute in, capacity is cut for a while: all workers are slower. Recovered is what succeeds 95
//! times of 100 for ten seconds. Ten seconds are near the edge: with whole workers gone instead of a share of
//! each, two of six come back from nine.

use std::fmt;
use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::policy::Policy;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{built, model, most, ms, open, plain, recovered, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Conduct, Fault, Server, Trouble};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "E8",
    title: "four panels: what a cut of capacity leaves behind",
    runs: (4 + OURS.len() as u64) * SEEDS,
    run,
};

const SEEDS: u64 = 6;
const TIMEOUT: Duration = s(3);
const WORKERS: u32 = 50;
const WORK: Duration = ms(50);
const LOAD: f64 = 0.37;
const BEGINS: Duration = s(60);
/// What has not recovered a minute after the cut is taken never to.
const LENGTH: Duration = s(130);
/// The loads under which the default policy is tried, by the deepest cut.
const OURS: [f64; 4] = [LOAD, 0.5, 0.7, 0.9];

/// One panel: what is lost, for how long, at which load.
struct Cut {
    lost: f64,
    lasts: Duration,
    load: f64,
}

const DEEPEST: Cut = Cut { lost: 0.8, lasts: s(10), load: LOAD };

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let resends = resends();
    let panels = [
        (Cut { lost: 0.775, ..DEEPEST }, 6.0),
        (DEEPEST, 0.0),
        (Cut { lasts: s(9), ..DEEPEST }, 6.0),
        (Cut { load: LOAD * 0.75, ..DEEPEST }, 6.0),
    ];
    let mut lines = Vec::new();
    for (cut, expected) in panels {
        let back = cut.recoveries(crew, &resends).iter().flatten().count();
        let name = format!("four resends, {cut}: recoveries");
        lines.push(Line::near(name, back as f64, expected, 0.0).in_units("of 6"));
    }
    let stack = Conduct::stack(built(Policy::builder().with_attempt_timeout(TIMEOUT)));
    for load in OURS {
        let cut = Cut { load, ..DEEPEST };
        let times = cut.recoveries(crew, &stack);
        let back = times.iter().flatten().count();
        let name = format!("ours, {cut}");
        lines.push(
            Line::near(format!("{name}: recoveries"), back as f64, 6.0, 0.0).in_units("of 6"),
        );
        let longest = times.into_iter().collect::<Option<Vec<_>>>().map(most);
        lines.push(Line::at_most(format!("{name}: longest"), longest, 6.0).in_units("s"));
    }
    lines
}

/// Four more at once.
fn resends() -> Conduct {
    plain(5, Some(TIMEOUT), Backoff::NONE)
}

impl Cut {
    /// How long after the cut each run has recovered.
    fn recoveries(&self, crew: &Crew<'_>, conduct: &Conduct) -> Vec<Option<f64>> {
        crew.each(SEEDS, |seed| self.recovery(conduct, seed))
    }

    fn recovery(&self, conduct: &Conduct, seed: u64) -> Option<f64> {
        let mut server = Server::new(Law::Constant(WORK));
        server.workers = Some(WORKERS);
        let per_second = server.capacity().unwrap_or(0.0) * self.load;
        let ends = BEGINS + self.lasts;
        // The same share of each worker, for 22.5 % of fifty are no whole number of them.
        let what = Fault::Slow(1.0 / (1.0 - self.lost));
        let trouble = Trouble { server: 0, from: BEGINS, to: ends, what };
        let model = model(LENGTH, open(per_second, conduct.clone()), server, vec![trouble]);
        recovered(&crate::run(&model, seed))
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, lasts) = (self.lost * 100.0, self.lasts.as_secs());
        write!(f, "-{lost} % for {lasts} s at load {:.2}", self.load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_decides_whether_the_deepest_cut_ends() {
        let light = Cut { load: LOAD * 0.75, ..DEEPEST };
        assert!(light.recovery(&resends(), 1).is_some());
        assert_eq!(DEEPEST.recovery(&resends(), 1), None);
    }
}
