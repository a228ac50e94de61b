//! The totals for other programs.

use super::comparison::Comparison;
use super::figures::Figures;
use super::verdict::{verdict, verdict_on};
use crate::record::Run;
use crate::recovery::Recovery;
use serde_json::{Value, json};

/// The totals of each run as a JSON document. Times are in seconds; what is not known is null; the hash
/// of the trace is a string, since it does not fit into the numbers of JavaScript.
#[must_use]
pub fn json(comparison: &Comparison) -> String {
    let policies: Vec<_> = comparison.runs.iter().map(totals).collect();
    let document = json!({
        "title": comparison.title,
        "scenario": comparison.scenario,
        "verdict": verdict(comparison),
        "policies": policies,
    });
    format!("{document:#}\n")
}

fn totals(run: &Run) -> Value {
    let figures = Figures::of(run);
    let (recovery, after) = match figures.recovery {
        Recovery::NoTrouble => ("no trouble", None),
        Recovery::After(time) => ("recovered", Some(time.as_secs_f64())),
        Recovery::Never => ("never", None),
        Recovery::Unknown => ("unknown", None),
    };
    let endings = run.endings.iter().map(|(why, calls)| json!({ "why": why, "calls": calls }));
    let attempts = run.attempts.iter();
    let attempts = attempts.map(|of| json!({ "sent": of.sent, "succeeded": of.succeeded }));
    json!({
        "name": run.name,
        "seed": run.seed,
        "verdict": verdict_on(run),
        "calls": run.calls,
        "succeeded": run.succeeded,
        "failed": run.failed,
        "attempts": run.sent,
        "success": run.success(),
        "attempts_per_call": run.amplification(),
        "peak_attempts_per_s": figures.peak,
        "capacity_per_s": figures.capacity,
        "recovery": recovery,
        "recovery_s": after,
        "closing_goodput": figures.closing,
        "worst_p99_s": figures.worst_p99.map(|time| time.as_secs_f64()),
        "last_call_ended_s": figures.done.map(|time| time.as_secs_f64()),
        "endings": endings.collect::<Vec<_>>(),
        "by_attempt": attempts.collect::<Vec<_>>(),
        "events": run.events,
        "trace": format!("{:016x}", run.trace),
    })
}
