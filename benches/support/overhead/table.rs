use std::collections::BTreeMap;
use std::fmt::Write;

use abate::ReplayBody;
use bytes::Bytes;
use http_body_util::Full;
use tower::BoxError;

use super::counts::{Counts, counts, say};
use super::operations::{Operation, operations};
use super::scenario::{Path, Scenario, Subject};
use super::subjects::caller;
use super::targets::{Check, checks};
use super::times::{SHARED, Time, threads, times, with_timers};
use crate::report::{machine, today, version_of};

/// All that was measured in one run.
pub(super) struct Results {
    pub(super) counts: BTreeMap<Scenario, Counts>,
    pub(super) times: BTreeMap<Scenario, Time>,
    /// Bytes of a call's future.
    pub(super) sizes: BTreeMap<Subject, usize>,
    /// Nanoseconds on one thread, and on each of two.
    pub(super) threads: BTreeMap<Subject, [f64; 2]>,
    pub(super) operations: Vec<Operation>,
    /// Bytes that a body gains below a retry layer.
    pub(super) growth: usize,
}

/// Measures everything, for some minutes, and lays it out.
///
/// # Errors
///
/// When a scenario cannot be set up, or does not do what it is for.
pub fn markdown() -> Result<String, BoxError> {
    let results = measured()?;
    let mut text = String::new();
    head(&mut text)?;
    succeeding(&mut text, &results)?;
    others(&mut text, &results)?;
    shared(&mut text, &results)?;
    single(&mut text, &results)?;
    targets(&mut text, &results)?;
    Ok(text)
}

fn measured() -> Result<Results, BoxError> {
    let paths = || Path::SUCCEEDING.into_iter().chain(Path::OTHER);
    let of = |path: Path| path.subjects().iter().map(move |it| Scenario::new(*it, path));
    let scenarios: Vec<_> = paths().flat_map(of).collect();
    let mut all_times = BTreeMap::new();
    for path in paths() {
        say(&format!("timing: {}", path.title()));
        all_times.append(&mut times(path)?);
    }
    say("timing: two threads");
    let threads = threads()?;
    say("timing: single decisions");
    let operations = operations();
    Ok(Results {
        counts: counts(&scenarios)?,
        times: all_times,
        sizes: sizes()?,
        threads,
        operations,
        growth: size_of::<ReplayBody<Full<Bytes>>>() - size_of::<Full<Bytes>>(),
    })
}

fn sizes() -> Result<BTreeMap<Subject, usize>, BoxError> {
    with_timers(|| {
        let size = |it| Ok((it, caller(Scenario::new(it, Path::Ready))?.future_size()));
        Subject::ALL.into_iter().map(size).collect()
    })
}

fn head(text: &mut String) -> std::fmt::Result {
    let versions = ["tower", "tower-resilience", "seatbelt"]
        .map(|package| format!("{package} {}", version_of(package)))
        .join(", ");
    writeln!(
        text,
        "## What a call pays for its layers\n\n\
         {}: {}. {versions}. Profile `bench`: thin LTO, one codegen unit.\n\n\
         Again: `cargo bench -p abate-benches --bench overhead -- --write docs/benchmarks.md` \
         (some minutes; valgrind counts the instructions).\n\n\
         The client answers by itself, without a network and without a box. Figures are what comes \
         on top of it: instructions (callgrind) and allocations are exact, nanoseconds are medians \
         of rounds taken in turns, and differ from machine to machine; × is the ratio to tower's \
         three layers in the same run.",
        today(),
        machine(),
    )
}

fn succeeding(text: &mut String, results: &Results) -> std::fmt::Result {
    write!(text, "\n### Calls that succeed\n\n| |")?;
    for path in Path::SUCCEEDING {
        write!(text, " {} |", path.title())?;
    }
    writeln!(text, " future |\n|---|{}", "---|".repeat(Path::SUCCEEDING.len() + 1))?;
    for subject in Subject::ALL {
        write!(text, "| {} |", subject.title())?;
        for path in Path::SUCCEEDING {
            write!(text, " {} |", results.cell(Scenario::new(subject, path)))?;
        }
        let size = results.sizes.get(&subject).copied().unwrap_or_default();
        let boxed = if subject.boxes_its_future() { ", and a box" } else { "" };
        writeln!(text, " {size} B{boxed} |")?;
    }
    writeln!(text, "\nA request's body grows by {} B below a retry layer of ours.", results.growth)
}

fn others(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(
        text,
        "\n### Calls that are refused, or retried\n\n| | | on top of the client |\n|---|---|---|"
    )?;
    for path in Path::OTHER {
        for subject in path.subjects() {
            let cell = results.cell(Scenario::new(*subject, path));
            writeln!(text, "| {} | {} | {cell} |", path.title(), subject.title())?;
        }
    }
    Ok(())
}

fn shared(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(
        text,
        "\n### Two threads on one service\n\nEach with its own clone; the client's share \
         included.\n\n| | one thread | each of two | × |\n|---|---|---|---|"
    )?;
    for subject in SHARED {
        if let Some([one, two]) = results.threads.get(&subject) {
            let (title, ratio) = (subject.title(), two / one);
            writeln!(text, "| {title} | {one:.0} ns | {two:.0} ns | {ratio:.2} |")?;
        }
    }
    Ok(())
}

fn single(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "\n### Single decisions\n\n| | takes | at most |\n|---|---|---|")?;
    for Operation { what, at_most, ns, .. } in &results.operations {
        let at_most = at_most.map_or(String::new(), |it| format!("{it} ns"));
        writeln!(text, "| {what} | {ns:.1} ns | {at_most} |")?;
    }
    Ok(())
}

fn targets(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "\n### What must hold\n\n| | at most | measured | |\n|---|---|---|---|")?;
    for check in checks(results) {
        let measured = check.measured.map_or("?".to_owned(), short);
        let Check { what, at_most, unit, .. } = &check;
        writeln!(text, "| {what} | {at_most} {unit} | {measured} | {} |", check.verdict())?;
    }
    Ok(())
}

impl Results {
    /// Instructions, allocations and time on top of the bare client.
    fn cell(&self, scenario: Scenario) -> String {
        let tower = Scenario::new(Subject::Tower, scenario.path);
        let compares = scenario.subject.is_stack() && scenario != tower;
        let (ours, theirs) = (self.counts.get(&scenario), self.counts.get(&tower));
        let mut cell = ours.map_or(String::new(), |counts| counts.show() + ", ");
        let _ = write!(cell, "{:.0} ns", self.extra(scenario));
        if compares && let Some((ours, theirs)) = ours.zip(theirs) {
            let instructions = ours.instructions as f64 / theirs.instructions as f64;
            let times = self.extra(scenario) / self.extra(tower);
            let _ = write!(cell, " ({instructions:.2}× instr, {times:.2}× ns)");
        }
        cell
    }

    fn extra(&self, scenario: Scenario) -> f64 {
        let is_bare = scenario == scenario.bare();
        let time = self.times.get(&scenario);
        time.map_or(f64::NAN, |it| if is_bare { it.whole } else { it.extra })
    }
}

/// As many digits as say something.
fn short(figure: f64) -> String {
    if figure.fract() == 0.0 || figure >= 100.0 {
        format!("{figure:.0}")
    } else {
        format!("{figure:.2}")
    }
}
