//! Parts of a policy that are tables of their own, or lists.

use http::HeaderName;

use crate::budget::Costs;
use crate::classify::Transient;
use crate::config::source::{Table, Value};
use crate::retry_after::{HintSources, ResetUnit};

/// Those in `retry_on`, which are all that are retried, and in `never_retry`, which are not although
/// the defaults say so.
pub(super) fn statuses(table: &mut Table<'_>) -> (Option<Vec<u16>>, Option<Vec<u16>>) {
    let [retried, never] = ["retry_on", "never_retry"].map(|key| {
        let value = table.take(key);
        let status = |item: &Value<'_>| item.integer(100..=599);
        value.is_present().then(|| value.items().iter().filter_map(status).collect::<Vec<_>>())
    });
    let both =
        retried.iter().flatten().find(|status| never.iter().flatten().any(|it| it == *status));
    if let Some(both) = both {
        table.problem("never_retry", format!("{both} stands in `retry_on` as well"));
    }
    (retried, never)
}

/// Why a retry may cost what it does.
pub(super) const REASONS: [(&str, Transient); 4] = [
    ("asked", Transient::Asked),
    ("server", Transient::Server),
    ("unsent", Transient::Unsent),
    ("ambiguous", Transient::Ambiguous),
];

/// `cost = 2`, or `cost = { server = 2 }`.
pub(super) fn costs(value: &Value<'_>, costs: Costs) -> Costs {
    let range = 0.0..=Costs::MOST;
    if !value.is_table() {
        let cost = value.number(range);
        let all = |cost| REASONS.iter().fold(costs, |costs, (_, why)| costs.with(*why, cost));
        return cost.map_or(costs, all);
    }
    let mut table = value.table();
    REASONS.iter().fold(costs, |costs, (name, why)| {
        let cost = table.as_mut().and_then(|table| table.take(name).number(range.clone()));
        cost.map_or(costs, |cost| costs.with(*why, cost))
    })
}

/// The headers in which the dependency's hints are.
pub(super) fn hints(mut table: Table<'_>) -> HintSources {
    let mut hints = HintSources::new();
    // Neither says anything without the other.
    let (mut reset, mut unit) = (table.take("reset"), table.take("reset_unit"));
    if reset.is_present() || unit.is_present() {
        (reset, unit) = (reset.required(), unit.required());
    }
    let name = reset.text().and_then(|name| {
        let name = HeaderName::from_bytes(name.as_bytes());
        name.map_err(|_| reset.problem("this is no name of a header")).ok()
    });
    let unit = unit.word(&[
        ("epoch_seconds", ResetUnit::EpochSeconds),
        ("epoch_millis", ResetUnit::EpochMillis),
        ("seconds", ResetUnit::Seconds),
        ("go_duration", ResetUnit::GoDuration),
    ]);
    if let (Some(name), Some(unit)) = (name, unit) {
        hints = hints.with_reset(name, unit);
    }
    if table.take("ratelimit").flag() == Some(true) {
        hints = hints.with_ratelimit();
    }
    if table.take("grpc_pushback").flag() == Some(true) {
        hints = hints.with_grpc_pushback();
    }
    if table.take("should_retry").flag() == Some(true) {
        hints = hints.with_should_retry();
    }
    hints
}
