//! Findings for programs.

use abate_sim::verify::{Expected, Line, Verdict};
use serde_json::{Value, json};

use super::finding::Finding;

/// All findings. What was not measured is null.
pub(super) fn document(findings: &[Finding]) -> Value {
    let experiments = findings.iter().map(|finding| {
        json!({
            "id": finding.experiment.id,
            "title": finding.experiment.title,
            "lines": finding.lines.iter().map(line).collect::<Vec<_>>(),
        })
    });
    json!({ "experiments": experiments.collect::<Vec<_>>() })
}

fn line(line: &Line) -> Value {
    let expected = match line.expected {
        Expected::Near { value, tolerance } => json!({ "near": value, "tolerance": tolerance }),
        Expected::AtMost(most) => json!({ "at_most": most }),
        Expected::AtLeast(least) => json!({ "at_least": least }),
        Expected::Never => json!("never"),
        Expected::Later(why) => json!({ "later": why }),
        _ => Value::Null,
    };
    let verdict = match line.verdict() {
        Verdict::Holds => "holds",
        Verdict::Missed => "missed",
        Verdict::Told => "told",
    };
    json!({
        "what": line.what,
        "unit": line.unit,
        "expected": expected,
        "got": line.got.filter(|got| got.is_finite()),
        "verdict": verdict,
    })
}
