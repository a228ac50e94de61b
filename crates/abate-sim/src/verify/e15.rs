//! E15, seams of the budget: where what it has counted and what is going on are furthest apart.

use std::time::Duration;

use abate_core::policy::Policy;
use abate_core::session::StopReason;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{built, model, most, ms, open, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Fault, Group, Guarding, Model, Rate, Server, Trouble};
use crate::record::Bin;
use crate::trace::{Ending, Happening, What};

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E15", title: "seams of the budget", runs: 5 * SEEDS, run };

const SEEDS: u64 = 30;
const PER_SECOND: f64 = 1000.0;
const MINUTE: Duration = s(60);
const SUCCESS: Law = Law::Constant(ms(20));
const FAILURE: Law = Law::Constant(ms(5));
/// A second is looked at from each of these moments on.
const STEP: Duration = ms(100);
const STEPS: usize = 10;

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let worst = most(crew.each(SEEDS, |seed| worst_second(&busy_then_quiet(), seed)));
    let success = crew.each(SEEDS, |seed| crate::run(&idle_then_busy(), seed).success());
    let mut lines = vec![
        Line::at_most("ours, 1000/s, 50/s, then down: worst second", worst, 1.4),
        Line::at_least("ours, idle, then 1000 at once: success", least(success), 0.99),
    ];
    let cases = [
        ("E7's outage", held_up()),
        ("down for 2 s of 10", flapping()),
        ("30 % always fail", a_class_that_fails()),
    ];
    for (name, model) in cases {
        let lost = most(crew.each(SEEDS, |seed| lost_to_the_pace(&model, seed)));
        lines.push(Line::at_most(format!("ours, {name}: answers lost"), lost, 0.005));
    }
    lines
}

/// 1000/s for five minutes, 50/s for twenty seconds, and from then on all fails.
fn busy_then_quiet() -> Model {
    let (quiet, down, end) = (s(300), s(320), s(340));
    let conduct = Conduct { breaker: Guarding::Off, ..Conduct::stack(Policy::default()) };
    let mut group = open(0.0, conduct);
    group.arrivals =
        Arrivals::Even(Rate::through(vec![(s(0), PER_SECOND), (quiet, PER_SECOND), (quiet, 50.0)]));
    let down = Trouble { server: 0, from: down, to: end, what: Fault::Errors(1.0) };
    Model { step: STEP, ..model(end, group, answering(SUCCESS, FAILURE), vec![down]) }
}

/// The most attempts for each call in any second of trouble.
fn worst_second(model: &Model, seed: u64) -> f64 {
    let since = model.troubles.first().map_or(Duration::ZERO, |trouble| trouble.from);
    let since = since.div_duration_f64(STEP) as usize;
    let run = crate::run(model, seed);
    let bins = run.bins.get(since..).unwrap_or_default();
    let sum = |bins: &[Bin], count: fn(&Bin) -> u32| bins.iter().map(count).sum::<u32>().into();
    most(bins.windows(STEPS).map(|second| {
        let (retries, calls): (f64, f64) =
            (sum(second, |bin| bin.retries), sum(second, |bin| bin.calls));
        1.0 + retries / calls
    }))
}

/// Nothing for ten minutes, then a thousand calls at once, of which a tenth fails, and late.
fn idle_then_busy() -> Model {
    let at = s(600);
    let calls = 1000;
    let mut server = answering(Law::Constant(ms(50)), Law::Constant(ms(200)));
    server.error_rate = 0.1;
    let group = Group {
        clients: calls,
        clients_per_process: calls,
        arrivals: Arrivals::Batch { at },
        ..open(0.0, Conduct::stack(Policy::default()))
    };
    model(at + MINUTE, group, server, vec![])
}

/// As in E7.
fn held_up() -> Model {
    let conduct = Conduct::stack(built(Policy::builder().with_attempt_timeout(s(1))));
    let mut server = Server::new(Law::Constant(ms(100)));
    server.workers = Some(30);
    let outage = Trouble { server: 0, from: s(60), to: s(70), what: Fault::Hold };
    model(s(120), open(280.0, conduct), server, vec![outage])
}

fn flapping() -> Model {
    let down = |from| Trouble { server: 0, from, to: from + s(2), what: Fault::Errors(1.0) };
    let troubles = (8..60).step_by(10).map(|second| down(s(second))).collect();
    let group = open(PER_SECOND, Conduct::stack(Policy::default()));
    model(MINUTE, group, answering(SUCCESS, FAILURE), troubles)
}

fn a_class_that_fails() -> Model {
    let mut server = answering(SUCCESS, FAILURE);
    server.hopeless = 0.3;
    model(MINUTE, open(PER_SECOND, Conduct::stack(Policy::default())), server, vec![])
}

fn answering(success: Law, failure: Law) -> Server {
    let mut server = Server::new(success);
    server.failing = Some(failure);
    server
}

/// The share of calls that waited for a retry which the pace then refused, so that the answer before it
/// was given up for nothing.
fn lost_to_the_pace(model: &Model, seed: u64) -> f64 {
    let (run, happenings) = crate::run_traced(model, seed);
    let mut answered = vec![0; run.calls as usize];
    let mut lost = 0_u32;
    for Happening { at, call, what, .. } in happenings {
        let Some(answered) = answered.get_mut(call as usize) else { continue };
        match what {
            What::Answered { .. } | What::TimedOut => *answered = at,
            What::Ended(Ending::Stopped(StopReason::Pace)) if *answered < at => lost += 1,
            _ => {}
        }
    }
    f64::from(lost) / run.calls as f64
}

fn least(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_after_idling_is_carried_by_its_own_earnings() {
        let run = crate::run(&idle_then_busy(), 0);
        assert_eq!(run.calls, 1000);
        assert!(run.success() >= 0.99, "{}", run.success());
    }

    #[test]
    fn a_class_that_fails_fails_however_often_it_is_tried() {
        let run = crate::run(&Model { length: s(10), ..a_class_that_fails() }, 0);
        assert!((run.success() - 0.7).abs() < 0.02, "{}", run.success());
        let again: Vec<_> = run.attempts.iter().skip(1).collect();
        assert!(again.iter().any(|attempts| attempts.sent > 0));
        assert!(again.iter().all(|attempts| attempts.succeeded == 0));
    }

    #[test]
    fn answers_that_are_lost_are_seen() {
        let mut outage = flapping();
        outage.length = s(12);
        assert!(lost_to_the_pace(&outage, 0) < 0.005);
        // Waits longer than a pace can tell of, which all end together.
        outage.servers.first_mut().unwrap().retry_after = Some(s(2));
        assert!(lost_to_the_pace(&outage, 0) > 0.005);
    }
}
