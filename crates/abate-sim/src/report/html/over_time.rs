//! The sections that follow the run from its beginning to its end.

use super::super::figures::{Figures, attempts as all_attempts, bins, per_second};
use super::super::number::{duration, percent, rate, ratio, short};
use super::panels::{Axis, Panel, View};
use super::section::Section;
use super::svg::{Scale, level};
use crate::record::{Bin, Run};
use maud::html;
use std::time::Duration;

/// What reaches the dependency, against what it can do.
pub(super) fn attempts(view: &View<'_>) -> Option<Section> {
    let all = |run: &Run| per_second(run, all_attempts);
    let capacities = view.runs().filter_map(|(_, figures)| figures.capacity);
    let scale = Scale::up_to(view.runs().flat_map(|(run, _)| all(run)).chain(capacities));
    let axis = Axis { title: "attempts per second", scale, label: short };
    let has_capacity = view.runs().any(|(_, figures)| figures.capacity.is_some());
    let body = view.over_time(&axis, |run, figures, steps| {
        let first = per_second(run, |bin| bin.first.into());
        let all = all(run);
        let marks = html! {
            path.first d=(steps.area(&[], &first)) {}
            path.retries d=(steps.area(&first, &all)) {}
            @if figures.capacity.is_some() {
                path.line-limit d=(steps.line(&known(run, |bin| bin.capacity))) {}
            }
        };
        Panel { note: busiest(figures), marks }
    });
    let mut legend = vec![
        ("first", "first tries".to_owned()),
        ("retries", "retries, on top of them".to_owned()),
    ];
    if has_capacity {
        legend.push(("line-limit", "what the dependency can answer".to_owned()));
    }
    legend.push(("trouble", "trouble".to_owned()));
    any_bins(view).then_some(Section {
        title: "Attempts per second",
        about: "What reaches the dependency. A storm is when retries keep it above its capacity after the trouble has gone.",
        legend,
        body,
    })
}

/// What calls get out of it.
pub(super) fn goodput(view: &View<'_>) -> Option<Section> {
    let offered = |run: &Run| per_second(run, |bin| bin.calls.into());
    let succeeded = |run: &Run| per_second(run, |bin| bin.succeeded.into());
    let most = |values: fn(&Run) -> Vec<f64>| {
        view.runs().flat_map(|(run, _)| values(run)).fold(0.0, f64::max)
    };
    let scale = Scale::up_to([match (most(offered), most(succeeded)) {
        // Calls that all begin at once would leave no height for those that succeed in time.
        (offered, succeeded) if succeeded > 0.0 => offered.min(4.0 * succeeded).max(succeeded),
        (offered, _) => offered,
    }]);
    let axis = Axis { title: "calls per second", scale, label: short };
    let body = view.over_time(&axis, |run, _, steps| {
        let marks = html! {
            path.offered d=(steps.area(&[], &offered(run))) {}
            path.succeeded d=(steps.area(&[], &succeeded(run))) {}
            path.line-offered d=(steps.line(&offered(run))) {}
        };
        let busiest = offered(run).into_iter().fold(0.0, f64::max);
        let beyond = match scale.place(busiest) {
            1.0 => format!(", up to {}/s begin", rate(busiest)),
            _ => String::new(),
        };
        Panel { note: format!("{} succeed{beyond}", percent(run.success())), marks }
    });
    any_bins(view).then_some(Section {
        title: "Calls that succeed",
        about: "Goodput: calls that end well each second, in front of the calls that begin. The gap is what callers feel.",
        legend: vec![
            ("line-offered", "calls that begin".to_owned()),
            ("succeeded", "calls that succeed".to_owned()),
            ("trouble", "trouble".to_owned()),
        ],
        body,
    })
}

/// How many attempts the calls of a moment cost.
pub(super) fn amplification(view: &View<'_>) -> Option<Section> {
    let amplified = |run: &Run| -> Vec<f64> {
        let of = |bin: &Bin| all_attempts(bin) as f64 / f64::from(bin.calls);
        bins(run).iter().map(|bin| if bin.calls == 0 { f64::NAN } else { of(bin) }).collect()
    };
    let bounds = view.runs().filter_map(|(run, _)| run.budget_ratio);
    let bounds: Vec<_> = bounds.map(|ratio| 1.0 + ratio).collect();
    let values = view.runs().flat_map(|(run, _)| amplified(run)).chain(bounds.iter().copied());
    let axis = Axis { title: "attempts per call", scale: Scale::up_to(values), label: short };
    let body = view.over_time(&axis, |run, _, steps| {
        let bound = run.budget_ratio.map(|ratio| 1.0 + ratio);
        let marks = html! {
            path.line-retries d=(steps.line(&amplified(run))) {}
            @if let Some(bound) = bound { path.line-limit d=(level(bound, &steps.value)) {} }
        };
        let most = amplified(run).into_iter().fold(0.0, f64::max);
        let bound = bound.map(|bound| format!(", budget {}", ratio(bound))).unwrap_or_default();
        Panel { note: format!("{} at most{bound}", ratio(most)), marks }
    });
    let mut legend = vec![("line-retries", "attempts for each call that begins".to_owned())];
    if !bounds.is_empty() {
        legend
            .push(("line-limit", "1 + b: all calls, and the share that a budget adds".to_owned()));
    }
    // Where all calls begin at once there is nothing to divide by later.
    let spread =
        view.runs().any(|(run, _)| bins(run).iter().filter(|bin| bin.calls > 0).count() > 1);
    spread.then_some(Section {
        title: "Amplification",
        about: "Attempts sent over calls begun. 1 is no retries; what stays high keeps an overload alive.",
        legend,
        body,
    })
}

/// What waits in front of the dependency.
pub(super) fn queue(view: &View<'_>) -> Option<Section> {
    let depth = |run: &Run| -> Vec<f64> { bins(run).iter().map(|bin| bin.queue.into()).collect() };
    let most = |run: &Run| depth(run).into_iter().fold(0.0, f64::max);
    let longest = view.runs().map(|(run, _)| most(run)).fold(0.0, f64::max);
    let axis =
        Axis { title: "requests in the queue", scale: Scale::up_to([longest]), label: short };
    let body = view.over_time(&axis, |run, _, steps| {
        let marks = html! { path.queue d=(steps.area(&[], &depth(run))) {} };
        Panel { note: format!("{} at most", rate(most(run))), marks }
    });
    (longest > 0.0).then_some(Section {
        title: "Queue at the dependency",
        about: "Requests that wait for it, at the worst of each moment. A queue longer than callers wait is work for nobody.",
        legend: vec![("queue", "requests in the queue".to_owned()), ("trouble", "trouble".to_owned())],
        body,
    })
}

/// How long the calls take that succeed.
pub(super) fn latency(view: &View<'_>) -> Option<Section> {
    let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
    let p50 = move |run: &Run| known(run, |bin| seconds(bin.p50));
    let p99 = move |run: &Run| known(run, |bin| seconds(bin.p99));
    let all = view.runs().flat_map(|(run, _)| p50(run).into_iter().chain(p99(run)));
    let label = |v| Duration::try_from_secs_f64(v).map_or_else(|_| "–".to_owned(), duration);
    let axis = Axis { title: "time to success", scale: Scale::decades(all)?, label };
    let body = view.over_time(&axis, |run, figures, steps| {
        let marks = html! {
            path.line-first d=(steps.line(&p50(run))) {}
            path.line-retries d=(steps.line(&p99(run))) {}
        };
        let worst = figures.worst_p99.map_or_else(|| "not known".to_owned(), duration);
        Panel { note: format!("worst p99 {worst}"), marks }
    });
    Some(Section {
        title: "Time of calls that succeed",
        about: "Waits and retries included, on a logarithmic axis. A gap is a moment in which no call succeeded.",
        legend: vec![
            ("line-first", "p50: half of them are faster".to_owned()),
            ("line-retries", "p99: 99 of 100 are".to_owned()),
            ("trouble", "trouble".to_owned()),
        ],
        body,
    })
}

fn any_bins(view: &View<'_>) -> bool {
    view.runs().any(|(run, _)| !bins(run).is_empty())
}

/// A value of each bin; not a number where it has none.
fn known(run: &Run, value: impl Fn(&Bin) -> Option<f64>) -> Vec<f64> {
    bins(run).iter().map(|bin| value(bin).unwrap_or(f64::NAN)).collect()
}

fn busiest(figures: &Figures) -> String {
    let peak = rate(figures.peak);
    match figures.capacity {
        Some(capacity) => format!("peak {peak}/s, {} × capacity", ratio(figures.peak / capacity)),
        None => format!("peak {peak}/s"),
    }
}
