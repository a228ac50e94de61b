//! The result in one sentence.

use super::comparison::Comparison;
use super::figures::Figures;
use super::number::{duration, percent, ratio};
use crate::record::Run;
use crate::recovery::Recovery;

/// What each policy comes to, in one line: `retry at once never recovers (240 s after the trouble 3 %
/// of calls succeed); default is back after 2 s, 1.04 attempts per call`.
#[must_use]
pub fn verdict(comparison: &Comparison) -> String {
    if comparison.runs.is_empty() {
        return "nothing was run".to_owned();
    }
    let verdicts: Vec<_> = comparison.runs.iter().map(verdict_on).collect();
    verdicts.join("; ")
}

pub(super) fn verdict_on(run: &Run) -> String {
    let Run { name, .. } = run;
    if run.calls == 0 {
        return format!("{name} made no calls");
    }
    let figures = Figures::of(run);
    let cost = format!("{} attempts per call", ratio(run.amplification()));
    let succeed = format!("{} of calls succeed", percent(run.success()));
    match figures.recovery {
        Recovery::After(time) if time <= run.step => {
            format!("{name} is back as soon as the trouble ends, {cost}")
        }
        Recovery::After(time) => format!("{name} is back after {}, {cost}", duration(time)),
        Recovery::Never => {
            let closing = figures.closing.map_or_else(|| "–".to_owned(), percent);
            let watched = duration(figures.watched);
            format!(
                "{name} never recovers ({watched} after the trouble {closing} of calls succeed)"
            )
        }
        Recovery::NoTrouble => format!("{name}: {succeed}, {cost}"),
        // Jobs that all began before the trouble was over: what counts is when they are through.
        Recovery::Unknown => match figures.done {
            Some(time) => {
                format!("{name}: {succeed}, {cost}, the last is through at {}", duration(time))
            }
            None => format!("{name}: {succeed}, {cost}"),
        },
    }
}
