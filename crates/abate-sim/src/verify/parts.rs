//! What many experiments are made of.

use std::time::Duration;

use abate_core::backoff::Backoff;
use abate_core::policy::{Policy, PolicyBuilder};
use abate_core::ratio::Ratio;

use crate::model::{Arrivals, Conduct, Group, Model, Network, Payment, Rate, Server, Trouble};
use crate::record::Run;
use crate::recovery::{Recovery, recovery};

pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(super) const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The policy of `builder`. Those of experiments are written here, so that one that cannot work is a
/// mistake of ours; the default in its place fails the experiment.
pub(super) fn built(builder: PolicyBuilder) -> Policy {
    builder.build().unwrap_or_default()
}

/// Other people's retry: this many attempts, no total time, waits of `backoff`.
pub(super) fn plain(attempts: u32, timeout: Option<Duration>, backoff: Backoff) -> Conduct {
    let builder = Policy::builder()
        .with_attempts(attempts)
        .with_backoff(backoff)
        .with_total_timeout(Duration::MAX)
        .with_attempt_timeout(timeout.unwrap_or(Duration::MAX));
    Conduct { attempt_timeout: timeout.is_some(), ..Conduct::plain(built(builder)) }
}

/// The same without waits, and with a limit that refuses at once what is above it.
pub(super) fn limited(attempts: u32, timeout: Duration, limit: usize) -> Conduct {
    let builder = Policy::builder()
        .with_attempts(attempts)
        .with_backoff(Backoff::NONE)
        .with_total_timeout(Duration::MAX)
        .with_attempt_timeout(timeout)
        .with_concurrency(limit)
        .with_concurrency_wait(Duration::ZERO);
    Conduct::plain(built(builder))
}

/// A bucket of five tokens that a tenth of every call, or of every success, fills.
pub(super) fn bucket(on_success: bool) -> Payment {
    let ratio = Ratio::from_percent(10).unwrap_or(Ratio::ZERO);
    Payment::Bucket { ratio, on_success, size: 5.0 }
}

/// Calls at random, of one process, to the first server.
pub(super) fn open(per_second: f64, conduct: Conduct) -> Group {
    one_group(Arrivals::Poisson(Rate::constant(per_second)), conduct)
}

/// Calls of one process to the first server, which is there in no time.
pub(super) fn one_group(arrivals: Arrivals, conduct: Conduct) -> Group {
    Group {
        clients: 1,
        clients_per_process: 1,
        arrivals,
        conduct,
        server: 0,
        network: Network::INSTANT,
        onward: None,
        counts: true,
        cancels: false,
    }
}

/// One group, one server, counted by the second.
pub(super) fn model(
    length: Duration,
    group: Group,
    server: Server,
    troubles: Vec<Trouble>,
) -> Model {
    Model {
        length,
        step: s(1),
        groups: vec![group],
        servers: vec![server],
        troubles,
        watched: 0,
        keeps_times: false,
    }
}

/// How many seconds after the last of its trouble a run has recovered, if it has.
pub(super) fn recovered(run: &Run) -> Option<f64> {
    match recovery(run) {
        Recovery::After(time) => Some(time.as_secs_f64()),
        _ => None,
    }
}

pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) =
        values.into_iter().fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / count
}

pub(super) fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
