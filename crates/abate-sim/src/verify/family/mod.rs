//! P1, storms by chance: what must hold for the default policy whatever happens.
//!
//! **Retries of any second** are at the most `1.25 × (ratio × calls + floor × processes) + 2 × processes`,
//! where `calls` are the first attempts of the busiest of that second and the two before it, and ratio
//! and floor are those of the budget.
//!
//! **Recovery** comes at the most 35 s after that of one try, and it comes at all: to the same storm and
//! seed, with neither retries nor a budget or breaker. One try always comes through here: what it
//! sends does not depend on what became of it, and these dependencies have room for all of that but
//! in their trouble, so that whatever piled up is worked off. 35 s are the longest that a breaker stays
//! open, 30 s, and what its probes and slow start take. Recovery is looked for no longer than twenty
//! minutes; what one try has not come to by then, the default must have by then and 35 s.
//!
//! **Where the 35 s are not asked**: of processes that make fewer calls than the floor of their budget
//! pays retries for, one call in five seconds. That floor lets each of their calls be tried again, and the
//! breaker of a process that sees so few cannot open in time; no budget of a process knows how many
//! others there are. Storm 26 is one: two calls a second from 44 processes, whose floors pay for 8.8 retries;
//! what piled up in half a minute is worked off after 118 s, where one try needs 13 s. They keep the first rule and
//! recover, and how many are late is told.
//!
//! A storm that breaks a rule is told by a line of its own, with its number.

use std::time::Duration;

use abate_core::policy::Policy;

use self::storm::Storm;
use super::experiment::Experiment;
use super::line::{Line, Verdict};
use super::parts::{most, s};
use crate::Crew;
use crate::model::Conduct;
use crate::record::{Bin, Run};
use crate::recovery::{Recovery, WINDOW, recovery};

mod dice;
mod storm;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "P1", title: "storms by chance, under the default policy", runs: STORMS, run };

const STORMS: u64 = 200;

/// How much later than one try the default may recover.
const BEHIND: Duration = s(35);

/// How long after the last trouble recovery is looked for.
const LONGEST: Duration = s(20 * 60);

/// What became of a storm.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// The most retries of a second, as a share of what they may be.
    retries: f64,
    /// When the default has recovered, in seconds from the end of the trouble; infinite for never.
    recovered: f64,
    /// How much of that was after one try had.
    behind: f64,
    /// Whether it makes so many calls that this is judged.
    judged: bool,
}

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let storms = crew.each(STORMS, |seed| {
        let storm = Storm::new(seed);
        (outcome(&storm), storm)
    });
    let all = || storms.iter().map(|(outcome, _)| *outcome);
    let (judged, told): (Vec<_>, Vec<_>) = all().partition(|outcome| outcome.judged);
    let late = told.iter().filter(|outcome| outcome.behind > BEHIND.as_secs_f64()).count();
    let mut lines = vec![
        retries("busiest second, as a share of what is allowed", most(all().map(|it| it.retries))),
        behind("recovery after one try's, longest", most(judged.iter().map(|it| it.behind))),
        comes("recovery after the trouble, longest", most(all().map(|it| it.recovered))),
        Line::reported("storms of fewer calls than their floors", told.len() as f64),
        Line::reported("of these, later than 35 s after one try", late as f64),
    ];
    for (outcome, storm) in &storms {
        let missed = outcome.lines().filter(|line| line.verdict() == Verdict::Missed);
        lines.extend(missed.map(|line| Line { what: format!("{}, {storm}", line.what), ..line }));
    }
    lines
}

impl Outcome {
    /// The rules that it must keep.
    fn lines(&self) -> impl Iterator<Item = Line> {
        let soon = self.judged.then(|| behind("recovery after one try's", self.behind));
        let rules = [retries("retries", self.retries), comes("recovery", self.recovered)];
        rules.into_iter().chain(soon)
    }
}

fn retries(what: &str, share: f64) -> Line {
    Line::at_most(what, share, 1.0)
}

fn behind(what: &str, seconds: f64) -> Line {
    Line::at_most(what, seconds, BEHIND.as_secs_f64()).in_units("s")
}

fn comes(what: &str, seconds: f64) -> Line {
    Line::at_most(what, seconds, (LONGEST + BEHIND).as_secs_f64()).in_units("s")
}

fn outcome(storm: &Storm) -> Outcome {
    // Most recover within that, and need not be run any longer.
    let soon = crate::run(&storm.model(storm.ours(), run_on(BEHIND)), storm.seed);
    let (one_try, ours) = match after(&soon) {
        Some(ours) => (recovered(storm, storm.one_try(), ours), Some(ours)),
        None => {
            let one_try = recovered(storm, storm.one_try(), LONGEST);
            (one_try, recovered(storm, storm.ours(), LONGEST.saturating_add(BEHIND)))
        }
    };
    let ours = ours.map_or(f64::INFINITY, |ours| ours.as_secs_f64());
    let one_try = one_try.map_or(LONGEST.as_secs_f64(), |one| one.as_secs_f64());
    Outcome {
        retries: worst_second(&soon, storm.processes),
        recovered: ours,
        behind: (ours - one_try).max(0.0),
        judged: storm.outpaces(Policy::default().budget().floor),
    }
}

/// When `storm` has recovered, if that is within `time` of the end of its trouble.
fn recovered(storm: &Storm, conduct: Conduct, time: Duration) -> Option<Duration> {
    after(&crate::run(&storm.model(conduct, run_on(time)), storm.seed))
}

fn after(run: &Run) -> Option<Duration> {
    if let Recovery::After(time) = recovery(run) { Some(time) } else { None }
}

/// How long a run has to go on for a recovery after `time` to be seen: for a good window, and the second
/// in which it begins.
const fn run_on(time: Duration) -> Duration {
    time.saturating_add(WINDOW).saturating_add(s(1))
}

fn worst_second(run: &Run, processes: u32) -> f64 {
    const SPREAD: f64 = 1.25;
    const AT_ONCE: f64 = 2.0;
    /// The second itself, and the two before.
    const SECONDS: usize = 3;
    let budget = Policy::default().budget();
    let (ratio, processes) = (budget.ratio.as_f64(), f64::from(processes));
    let second = |(at, bin): (usize, &Bin)| {
        let last = run.bins.iter().skip((at + 1).saturating_sub(SECONDS)).take(SECONDS.min(at + 1));
        let calls = last.map(|bin| bin.first).max().unwrap_or(0);
        let earned = ratio * f64::from(calls) + budget.floor * processes;
        f64::from(bin.retries) / (SPREAD * earned + AT_ONCE * processes)
    };
    most(run.bins.iter().enumerate().map(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Payment;

    /// One of them alone: `ABATE_STORM=17 cargo test -p abate-sim storms_by_chance -- --nocapture`.
    #[test]
    fn storms_by_chance_neither_break_the_budget_nor_last() {
        let chosen = std::env::var("ABATE_STORM").ok().map(|number| number.parse().unwrap());
        let seeds = chosen.map_or(0..20, |seed| seed..seed + 1);
        for storm in seeds.map(Storm::new) {
            let outcome = outcome(&storm);
            if chosen.is_some() {
                println!("{storm}\n{outcome:?}");
            }
            for line in outcome.lines() {
                assert_eq!(line.verdict(), Verdict::Holds, "{outcome:?}, {storm}");
            }
        }
    }

    #[test]
    fn a_storm_is_the_same_each_time_and_no_two_are() {
        let described = |seed| Storm::new(seed).to_string();
        let all: Vec<_> = (0..STORMS).map(described).collect();
        assert_eq!(all, (0..STORMS).map(described).collect::<Vec<_>>());
        for kind in ["down", "black hole", "held up", "slow", "capacity", "% errors"] {
            let of_kind = all.iter().filter(|storm| storm.contains(kind)).count();
            assert!(of_kind > 15, "{kind}: {of_kind}");
        }
    }

    #[test]
    fn retries_without_a_budget_break_the_first_rule() {
        let breaks = |storm: &Storm| {
            let free = Conduct { payment: Payment::Free, ..storm.ours() };
            let run = crate::run(&storm.model(free, run_on(BEHIND)), storm.seed);
            worst_second(&run, storm.processes) > 1.0
        };
        assert!((0..12).map(Storm::new).any(|storm| breaks(&storm)));
    }
}
