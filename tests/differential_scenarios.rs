//! What is compared: the published storms, made small.

use std::time::Duration;

use abate::decisions::rng::Seed;
use abate::{Backoff, Curve, Jitter, Policy, PolicyBuilder, PolicyError};
use abate_sim::law::Law;
use abate_sim::model::{Arrivals, Conduct, Fault, Group, Model, Network, Payment, Server, Trouble};

const FULL: Backoff = Backoff {
    base: ms(100),
    curve: Curve::Exponential { factor: 2.0 },
    cap: s(10),
    jitter: Jitter::Full,
};

/// Something to compare.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) seed: u64,
    pub(crate) model: Model,
}

pub(crate) type Scenarios = Result<Vec<Scenario>, PolicyError>;

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// E2: a hundred clients, a server of any number of workers; half of the attempts fail, or all.
pub(crate) fn rates() -> Scenarios {
    let few = builder(4, FULL).with_concurrency(1).with_concurrency_wait(ms(20));
    let cases = [
        ("half fail, retried at once", 0.5, plain(4, Backoff::NONE)?),
        ("half fail, retried with jitter", 0.5, plain(4, FULL)?),
        ("all fail, retried at once", 1.0, plain(4, Backoff::NONE)?),
        ("half fail, the whole stack", 0.5, Conduct::stack(Policy::default())),
        ("half fail, few places", 0.5, Conduct::plain(few.build()?)),
    ];
    let scenarios = (1..).step_by(2).zip(cases).flat_map(|(seed, (name, p, conduct))| {
        [seed, seed + 1].map(|seed| {
            let mut server = Server::new(Law::Exponential(ms(10)));
            server.error_rate = p;
            let calls = open(seed, 1000.0, s(2), 100);
            let clients = group(100, 10, calls, conduct.clone());
            Scenario { name, seed, model: model(s(5), clients, server, vec![]) }
        })
    });
    Ok(scenarios.collect())
}

/// E7 with other people's retries.
pub(crate) fn metastable() -> Scenarios {
    let mut scenarios = storms([
        ("one try", 1, plain(1, Backoff::NONE)?),
        ("one retry at once", 1, plain(2, Backoff::NONE)?),
        ("three retries with jitter", 1, plain(4, FULL)?),
    ]);
    let withdrawn = [("requests that leave with their callers", 2, plain(3, FULL)?)];
    scenarios.extend(storms(withdrawn).into_iter().map(|mut scenario| {
        scenario.model.groups.iter_mut().for_each(|group| group.cancels = true);
        scenario.model.servers.iter_mut().for_each(|server| server.queue = Some(100));
        scenario
    }));
    Ok(scenarios)
}

/// E7 with places for sixty calls.
pub(crate) fn limits() -> Scenarios {
    let limit = |backoff, wait| {
        let builder = builder(4, backoff).with_concurrency(60).with_concurrency_wait(wait);
        builder.build().map(Conduct::plain)
    };
    Ok(storms([
        ("places that are not waited for", 1, limit(Backoff::NONE, Duration::ZERO)?),
        ("places that are waited for", 2, limit(FULL, ms(300))?),
        ("places, and a budget", 2, Conduct { payment: Payment::Budget, ..limit(FULL, ms(300))? }),
    ]))
}

/// E7 with the whole stack by the default policy.
pub(crate) fn stacks() -> Scenarios {
    let default = Policy::builder().with_attempt_timeout(s(1));
    let stack = Conduct::stack(default.clone().build()?);
    let limited = Conduct::stack(default.with_concurrency(60).build()?);
    Ok(storms([
        ("the stack in one process", 1, stack.clone()),
        ("the stack in five processes", 5, stack),
        ("the stack with a limit in two processes", 2, limited),
    ]))
}

/// E9: jobs that all fail at one moment, and come back to a server whose queue has an end.
pub(crate) fn herds() -> Scenarios {
    let every = Backoff { base: s(30), curve: Curve::Fixed, cap: s(30), jitter: Jitter::None };
    let decorrelated = Backoff { base: s(15), cap: s(3600), jitter: Jitter::Decorrelated, ..every };
    let cases = [
        ("jobs every 30 s", None, plain(26, every)?),
        ("jobs by Sidekiq", None, plain(26, Backoff::SIDEKIQ)?),
        ("jobs by Sidekiq of old", None, plain(26, Backoff::SIDEKIQ_LEGACY)?),
        ("jobs that are told when to come back", Some(s(20)), plain(26, decorrelated)?),
        ("jobs through the whole stack", Some(s(5)), Conduct::stack(Policy::default())),
    ];
    let scenarios = (1..).step_by(2).zip(cases).flat_map(|(seed, (name, hint, conduct))| {
        [seed, seed + 1].map(|seed| {
            let mut server = Server::new(Law::Constant(ms(100)));
            (server.workers, server.queue) = (Some(2), Some(10));
            server.retry_after = hint;
            let jobs = Arrivals::Batch { at: Duration::ZERO };
            let what = Fault::Down { status: 500 };
            let outage = Trouble { server: 0, from: Duration::ZERO, to: s(60), what };
            let herd = group(1000, 200, jobs, conduct.clone());
            Scenario { name, seed, model: model(s(24 * 60 * 60), herd, server, vec![outage]) }
        })
    });
    Ok(scenarios.collect())
}

/// Thirty workers of 100 ms behind a queue without bound, calls that wait a second for their answers and
/// leave their requests behind, and ten seconds that hold all of them and let them through together; for
/// each conduct, in so many processes, twice.
fn storms(cases: impl IntoIterator<Item = (&'static str, u32, Conduct)>) -> Vec<Scenario> {
    let scenarios = (1..).step_by(2).zip(cases).flat_map(|(seed, (name, processes, conduct))| {
        [seed, seed + 1].map(|seed| {
            let mut server = Server::new(Law::Constant(ms(100)));
            server.workers = Some(30);
            let hold = Trouble { server: 0, from: s(2), to: s(12), what: Fault::Hold };
            let length = s(18);
            let calls = open(seed, 280.0, length, processes);
            let clients = group(processes, 1, calls, conduct.clone());
            Scenario { name, seed, model: model(length, clients, server, vec![hold]) }
        })
    });
    scenarios.collect()
}

fn builder(attempts: u32, backoff: Backoff) -> PolicyBuilder {
    Policy::builder()
        .with_attempts(attempts)
        .with_backoff(backoff)
        .with_total_timeout(Duration::MAX)
        .with_attempt_timeout(s(1))
}

fn plain(attempts: u32, backoff: Backoff) -> Result<Conduct, PolicyError> {
    Ok(Conduct::plain(builder(attempts, backoff).build()?))
}

/// Calls at random in whole milliseconds, of clients at random.
fn open(seed: u64, per_second: f64, length: Duration, clients: u32) -> Arrivals {
    const BITS: u32 = 53;
    let mut stream = Seed::new(seed).stream(0);
    let mut at = 0.0;
    let calls = std::iter::from_fn(|| {
        let unit = (stream.below(1 << BITS) + 1) as f64 / (1_u64 << BITS) as f64;
        at -= unit.ln() / per_second;
        let call = (ms((at * 1e3) as u64), stream.below(clients.into()) as u32);
        (call.0 < length).then_some(call)
    });
    Arrivals::Trace(calls.collect())
}

fn group(clients: u32, clients_per_process: u32, arrivals: Arrivals, conduct: Conduct) -> Group {
    Group {
        clients,
        clients_per_process,
        arrivals,
        conduct,
        server: 0,
        network: Network::INSTANT,
        onward: None,
        counts: true,
        cancels: false,
    }
}

fn model(length: Duration, group: Group, server: Server, troubles: Vec<Trouble>) -> Model {
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
