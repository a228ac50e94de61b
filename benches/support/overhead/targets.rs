//! What must hold, from the project's targets.

use super::counts::Counts;
use super::scenario::{Path, Scenario, Subject};
use super::table::Results;

/// The most instructions that may come on top of the bare client, and how many would be fine.
pub(super) const INSTRUCTIONS: [(Subject, Path, i64, i64); 6] = [
    (Subject::Retry, Path::Ready, 850, 650),
    (Subject::Retry, Path::Unrepeatable, 350, 250),
    (Subject::Breaker, Path::Ready, 450, 350),
    (Subject::Limit, Path::Ready, 300, 250),
    (Subject::AttemptTimeout, Path::Ready, 90, 60),
    (Subject::RetryAfter, Path::Ready, 90, 60),
];

/// The stack's instructions, as a share of a peer's.
const SHARES: [(Path, Subject, f64); 4] = [
    (Path::Ready, Subject::Tower, 1.25),
    (Path::Ready, Subject::TowerResilience, 0.35),
    (Path::ReadyHeaders, Subject::Tower, 0.5),
    (Path::Pending, Subject::Tower, 1.4),
];

const REFUSED: [Scenario; 5] = [
    Scenario::new(Subject::Stack, Path::BreakerOpen),
    Scenario::new(Subject::Breaker, Path::BreakerOpen),
    Scenario::new(Subject::Stack, Path::LimitFull),
    Scenario::new(Subject::Limit, Path::LimitFull),
    Scenario::new(Subject::RetryBudget, Path::RepeatRefused),
];

/// One line of the targets, and what was measured.
pub(super) struct Check {
    pub(super) what: String,
    pub(super) at_most: f64,
    /// Unknown where valgrind is missing.
    pub(super) measured: Option<f64>,
    pub(super) unit: &'static str,
}

impl Check {
    pub(super) fn verdict(&self) -> &'static str {
        match self.measured {
            None => "not measured",
            Some(measured) if measured <= self.at_most => "held",
            Some(_) => "**missed**",
        }
    }
}

pub(super) fn checks(results: &Results) -> Vec<Check> {
    let mut all = Vec::new();
    let mut push = |what: String, at_most, measured, unit| {
        all.push(Check { what, at_most, measured, unit });
    };
    let instructions = |subject, path| {
        results.counts.get(&Scenario::new(subject, path)).map(|it| it.instructions as f64)
    };
    let ours = results.counts.iter().filter(|(it, _)| it.subject.is_ours() && it.path.succeeds());
    let one_call = ours.filter(|(it, _)| it.path != Path::OneRetry);
    let most = one_call.map(|(_, counts)| counts.allocations_per_call()).reduce(f64::max);
    push("a call that succeeds, any layer, any headers".to_owned(), 0.0, most, "alloc");
    for (path, peer, share) in SHARES {
        let pair = instructions(Subject::Stack, path).zip(instructions(peer, path));
        let what = format!("Stack, {}, to {}", path.title(), peer.name());
        push(what, share, pair.map(|(ours, theirs)| ours / theirs), "×, instr");
    }
    for (subject, path, at_most, _) in INSTRUCTIONS {
        let what = format!("{}, {}", subject.title(), path.title());
        push(what, at_most as f64, instructions(subject, path), "instr");
    }
    for operation in &results.operations {
        if let Some(at_most) = operation.at_most {
            push(operation.what.to_owned(), at_most, Some(operation.ns), "ns");
        }
    }
    for scenario in REFUSED {
        let what = format!("{}, {}", scenario.subject.title(), scenario.path.title());
        push(what.clone(), 250.0, results.times.get(&scenario).map(|it| it.extra), "ns");
        let counts = results.counts.get(&scenario).copied();
        push(what, 1.0, counts.map(Counts::allocations_per_call), "alloc");
    }
    let two_to_one = |subject| results.threads.get(&subject).map(|[one, two]| two / one);
    push("two threads, retry alone, to one".to_owned(), 1.3, two_to_one(Subject::Retry), "×");
    push("two threads, breaker alone, to one".to_owned(), 1.3, two_to_one(Subject::Breaker), "×");
    let two = |subject| results.threads.get(&subject).map(|[_, two]| *two);
    let whole = two(Subject::Stack).zip(two(Subject::Tower)).map(|(ours, theirs)| ours / theirs);
    push("two threads, Stack, to tower's".to_owned(), 1.0, whole, "×");
    let size = results.sizes.get(&Subject::Stack).map(|it| *it as f64);
    push("the future of the Stack".to_owned(), 512.0, size, "B");
    push("what the request grows by".to_owned(), 8.0, Some(results.growth as f64), "B");
    all
}
