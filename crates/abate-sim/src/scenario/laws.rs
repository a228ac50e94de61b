//! Durations by a law, and rates over time.

use std::time::Duration;

use abate_core::config::source::Value;

use crate::law::Law;
use crate::model::Rate;

/// More calls in a second than any run could make.
const MOST_PER_SECOND: f64 = 1e7;

/// `"100ms"`, `{ exponential = "100ms" }`, `{ uniform = ["50ms", "150ms"] }`, `{ normal = ["100ms", "20ms"] }`.
pub(super) fn law(value: &Value<'_>) -> Option<Law> {
    if !value.is_table() {
        return value.duration().map(Law::Constant);
    }
    let mut table = value.table()?;
    let [exponential, uniform, normal] =
        ["exponential", "uniform", "normal"].map(|key| table.take(key));
    let laws = [
        exponential.duration().map(Law::Exponential),
        pair(&uniform).map(|(least, most)| Law::Uniform(least, most)),
        pair(&normal).map(|(mean, deviation)| Law::Normal(mean, deviation)),
    ];
    if let Some(Law::Uniform(least, most)) = laws[1]
        && least > most
    {
        uniform.problem("the shorter duration comes first");
    }
    match [exponential, uniform, normal].iter().filter(|value| value.is_present()).count() {
        1 => laws.into_iter().flatten().next(),
        _ => {
            value.problem("expected one law: `exponential`, `uniform` or `normal`");
            None
        }
    }
}

/// `280`, or `[["0s", 40], ["25s", 80]]` with straight lines between these.
pub(super) fn rate(value: &Value<'_>) -> Option<Rate> {
    let per_second = |value: &Value<'_>| value.number(0.0..=MOST_PER_SECOND);
    if !value.is_array() {
        return per_second(value).map(Rate::constant);
    }
    let items = value.items();
    let point = |item: &Value<'_>| match &*item.items() {
        [at, rate] => at.duration().zip(per_second(rate)),
        _ => {
            item.problem("expected a moment and the calls per second then, such as [\"25s\", 80]");
            None
        }
    };
    let points: Option<Vec<_>> = items.iter().map(point).collect();
    let points = points?;
    if points.is_empty() {
        value.problem("expected at least one moment and the calls per second then");
        return None;
    }
    Some(Rate::through(points))
}

fn pair(value: &Value<'_>) -> Option<(Duration, Duration)> {
    if !value.is_present() {
        return None;
    }
    match &*value.items() {
        [first, second] => first.duration().zip(second.duration()),
        _ => {
            value.problem("expected two durations, such as [\"50ms\", \"150ms\"]");
            None
        }
    }
}
