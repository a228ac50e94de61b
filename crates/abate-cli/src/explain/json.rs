use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::facts::Facts;
use super::load::Load;
use super::schedule::{Cap, Spread, Wait};

/// Times in seconds, loads as factors. Keys are added, and never change their meaning.
pub(super) fn document(file: &Path, facts: &[Facts<'_>]) -> Value {
    let policies: Vec<_> = facts.iter().map(policy).collect();
    json!({ "file": file.to_string_lossy(), "policies": policies })
}

fn policy(facts: &Facts<'_>) -> Value {
    let Facts { name, declared, schedule, held, load, warnings } = facts;
    let warning = |it: &super::warnings::Warning| json!({ "key": it.key, "message": it.message });
    let (cap_binds, cap_from) = match schedule.cap {
        Cap::Binds { from } => (true, Some(from)),
        Cap::Beyond { from } => (false, Some(from)),
        Cap::Never => (false, None),
    };
    json!({
        "dependency": name,
        "attempts": declared.policy().attempts(),
        "waits": schedule.waits.iter().map(wait).collect::<Vec<_>>(),
        "waits_left_out": schedule.left_out,
        "total_wait": spread(&schedule.total()),
        "cap": { "binds": cap_binds, "from_retry": cap_from },
        "held": { "at_most": seconds(held.at_most), "without_total_timeout": seconds(held.without_total) },
        "load": load.iter().map(load_of).collect::<Vec<_>>(),
        "warnings": warnings.iter().map(warning).collect::<Vec<_>>(),
    })
}

fn wait(wait: &Wait) -> Value {
    json!({
        "retry": wait.retry,
        "bound": seconds(wait.bound),
        "min": seconds(wait.least),
        "median": seconds(wait.spread.median),
        "p99": seconds(wait.spread.p99),
        "max": seconds(wait.spread.most),
        "so_far": spread(&wait.so_far),
    })
}

fn spread(spread: &Spread) -> Value {
    let Spread { median, p99, most } = *spread;
    json!({ "median": seconds(median), "p99": seconds(p99), "max": seconds(most) })
}

fn load_of(load: &Load) -> Value {
    json!({
        "layers": load.layers,
        "one_layer_retries": load.one,
        "each_with_budget": load.budgeted,
        "each_without_budget": load.unbounded,
    })
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}
