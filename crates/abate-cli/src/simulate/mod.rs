//! `abate simulate`: policies against an outage, before production tries them.

use std::io::Write;
use std::time::Duration;

use abate_sim::Crew;
use abate_sim::record::Run;
use abate_sim::report::{self, Comparison};
use abate_sim::scenario::{Candidate, Scenario, shipped_names};
use abate_sim::survey;

use crate::exit::{Failure, Outcome};
use crate::progress::{Progress, Together};
use crate::terminal;

mod args;
mod files;
mod given;

pub(crate) use self::args::Args;

/// Simulates what `args` ask for.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome, Failure> {
    if args.list {
        return list(out);
    }
    if let Some(name) = &args.print {
        out.write_all(given::file_of(name)?.as_bytes())?;
        return Ok(Outcome::Fine);
    }
    let scenario = given::scenario(args.scenario.as_deref())?;
    let candidates = given::candidates(args, &scenario)?;
    let mut comparison = Comparison {
        title: scenario.title.clone(),
        scenario: scenario.about.clone(),
        runs: simulate(&scenario, &candidates, args.seed),
        map: None,
    };
    if args.map {
        comparison.map = Some(map(&scenario, &candidates, args.seed)?);
    }
    if let Some(path) = &args.report {
        files::write(path, report::html(&comparison).as_bytes())?;
    }
    if let Some(folder) = &args.csv {
        files::write_tables(folder, &comparison.runs)?;
    }
    if args.json {
        out.write_all(report::json(&comparison).as_bytes())?;
    } else {
        out.write_all(report::terminal(&comparison, terminal::width(), true).as_bytes())?;
    }
    Ok(Outcome::Fine)
}

/// What becomes of each policy; several at once.
fn simulate(scenario: &Scenario, candidates: &[Candidate], seed: u64) -> Vec<Run> {
    const STEPS: u64 = 1000;
    let progress = Progress::new(STEPS * candidates.len() as u64);
    progress.say("simulating");
    let together = Together::new(&progress, candidates.len());
    let length = scenario.length().max(Duration::from_nanos(1));
    let runs = Crew::new(&|| {}).each(candidates.len() as u64, |number| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let candidate = candidates.get(number)?;
        let mut on_step = |now: Duration| {
            let done = now.as_secs_f64() / length.as_secs_f64() * STEPS as f64;
            together.stand_at(number, (done as u64).min(STEPS));
        };
        let model = scenario.model(&candidate.conduct);
        let mut run = abate_sim::run_watched(&model, seed, &mut on_step);
        run.name.clone_from(&candidate.name);
        Some(run)
    });
    runs.into_iter().flatten().collect()
}

fn map(scenario: &Scenario, candidates: &[Candidate], seed: u64) -> Result<report::Map, Failure> {
    let progress = Progress::new(survey::runs(candidates.len()));
    progress.say("looking who recovers");
    let map = survey::survey(scenario, candidates, seed, &Crew::new(&|| progress.step()));
    map.ok_or_else(|| {
        let why = "--map needs a scenario whose calls have a rate, whose server has a number of \
                   workers, and in which there is trouble: there is nothing to vary in this one";
        Failure::Input(why.to_owned())
    })
}

fn list(out: &mut impl Write) -> Result<Outcome, Failure> {
    for name in shipped_names() {
        let scenario = given::scenario(Some(name.as_ref()))?;
        let style = terminal::TITLE;
        writeln!(out, "{style}{name:<16}{style:#} {}", scenario.title)?;
    }
    Ok(Outcome::Fine)
}
