//! Four clients, the same load, the same outage: who is back first, and who keeps the origin down?
//!
//! ```text
//! cargo run --release -p abate-examples --example storm
//! ```
//!
//! Each client has an origin of its own, which could answer 300 requests per second (30 workers, 100 ms each) and is
//! asked for 240. For 6 s it answers nothing while its queue grows, and it goes on working for callers that gave up.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use abate_examples::figures::{Figures, Report};
use abate_examples::load::{Get, Storm};
use abate_examples::tally::Plan;
use abate_examples::{chart, figures};
use clap::Parser;
use http::Response;
use tokio::time::{Sleep, sleep};
use tower::retry::backoff::{Backoff, ExponentialBackoff, ExponentialBackoffMaker, MakeBackoff};
use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, RetryLayer};
use tower::timeout::TimeoutLayer;
use tower::util::rng::Rng;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// How long any client waits for one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// Attempts per call of the clients that retry, the first included.
const ATTEMPTS: u32 = 3;

/// The first wait of `three-tries` is up to this long, each later one up to twice the one before.
const BASE: Duration = Duration::from_millis(100);

/// Open files for the connections of four storms, both ends of each: about 3,000 at the worst, and as many in reserve.
#[cfg(unix)]
const OPEN_FILES: u64 = 6_000;

/// Four clients under the same load, through the same outage.
#[derive(Debug, Parser)]
struct Args {
    /// Print one line of JSON instead of the report.
    #[arg(long)]
    json: bool,
    /// Seed of the jitter.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Seconds after the outage.
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(i64::from(figures::WINDOW)..=600))]
    seconds: u32,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    let plan = Plan {
        rate: 240,
        health: 5,
        outage: 6,
        recovery: args.seconds,
        workers: 30,
        service_time: Duration::from_millis(100),
    };
    announce(&plan)?;
    #[cfg(unix)]
    allow_open_files()?;

    let jitter = Jitter::new(args.seed);
    let timeout = TimeoutLayer::new(ATTEMPT_TIMEOUT);
    let mut storm = Storm::new(plan);
    storm.add("one-try", |client| timeout.layer(client)).await?;
    storm.add("three-tries", |client| three_tries(timeout.layer(client), jitter.clone())).await?;
    let policy = TowerPolicy::new(jitter.clone())?;
    storm
        .add("tower-retry", |client| {
            ServiceBuilder::new()
                .layer(RetryLayer::new(policy))
                .layer(timeout.clone())
                .service(client)
        })
        .await?;
    let policy = abate::Policy::builder().with_attempt_timeout(ATTEMPT_TIMEOUT).build()?;
    storm
        .add("abate", |client| {
            ServiceBuilder::new().layer(abate::Stack::new(policy)).service(client)
        })
        .await?;
    let outcomes = storm.run().await?;

    for outcome in &outcomes {
        if let Some(reason) = outcome.tally.unopened() {
            let name = outcome.name;
            writeln!(
                io::stderr(),
                "{name} could not open a connection, so its figures say nothing: {reason}"
            )?;
        }
    }
    let clients: Vec<_> = outcomes.iter().map(|outcome| Figures::new(&plan, outcome)).collect();
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&Report { clients })?)?;
        return Ok(());
    }
    writeln!(out, "\n{}\n{}", chart::table(&plan, &clients), chart::chart(&plan, &outcomes))?;
    if let Some(verdict) = chart::verdict(&plan, &clients) {
        writeln!(out, "{verdict}")?;
    }
    Ok(())
}

fn announce(plan: &Plan) -> io::Result<()> {
    let Plan { rate, health, outage, recovery, workers, service_time } = plan;
    writeln!(
        io::stderr(),
        "Each client calls an origin of its own {rate} times per second ({workers} workers, {service_time:?} per \
         request).\n{health} s of health, {outage} s in which the origin answers nothing, {recovery} s after it. \
         Below: answered/sent per second.",
    )
}

/// Many a system allows 1,024 open files or fewer unless asked.
#[cfg(unix)]
fn allow_open_files() -> io::Result<()> {
    let (before, _) = rlimit::Resource::NOFILE.get()?;
    if before >= OPEN_FILES {
        return Ok(());
    }
    let now = rlimit::increase_nofile_limit(OPEN_FILES)?;
    let verdict = if now < OPEN_FILES { "which may be too few" } else { "which is enough" };
    writeln!(
        io::stderr(),
        "Open files allowed: {before}; raised for this run to {now}, {verdict} (about 3,000 are needed)."
    )
}

/// What is often written by hand: three tries with full jitter, and nothing that looks beyond the one call.
fn three_tries<S, B>(
    client: S,
    jitter: Jitter,
) -> impl Service<Get, Response = Response<B>, Error = S::Error, Future: Send> + Clone + Send
where
    S: Service<Get, Response = Response<B>, Future: Send, Error: Send> + Clone + Send,
    B: Send,
{
    service_fn(move |request: Get| {
        let (client, mut jitter) = (client.clone(), jitter.clone());
        async move {
            let mut ceiling = BASE;
            for _ in 1..ATTEMPTS {
                match client.clone().oneshot(request.clone()).await {
                    result if failed(&result) => sleep(ceiling.mul_f64(jitter.next_f64())).await,
                    result => return result,
                }
                ceiling *= 2;
            }
            client.oneshot(request).await
        }
    })
}

/// tower's own parts, put together as its documentation does: its budget and its backoff, both with their defaults.
#[derive(Clone)]
struct TowerPolicy {
    budget: Arc<TpsBudget>,
    backoff: ExponentialBackoff<Jitter>,
    retries_left: u32,
}

impl TowerPolicy {
    fn new(jitter: Jitter) -> Result<Self, BoxError> {
        // The figures of `ExponentialBackoffMaker::default()`, whose generator takes no seed.
        let (min, max) = (Duration::from_millis(50), Duration::from_millis(u64::MAX));
        let backoff = ExponentialBackoffMaker::new(min, max, 0.99, jitter)?.make_backoff();
        Ok(Self { budget: Arc::default(), backoff, retries_left: ATTEMPTS - 1 })
    }
}

impl<B, E> Policy<Get, Response<B>, E> for TowerPolicy {
    type Future = Sleep;

    fn retry(&mut self, _: &mut Get, result: &mut Result<Response<B>, E>) -> Option<Sleep> {
        if !failed(result) {
            self.budget.deposit();
            return None;
        }
        self.retries_left = self.retries_left.checked_sub(1)?;
        self.budget.withdraw().then(|| self.backoff.next_backoff())
    }

    fn clone_request(&mut self, request: &Get) -> Option<Get> {
        Some(request.clone())
    }
}

fn failed<B, E>(result: &Result<Response<B>, E>) -> bool {
    !matches!(result, Ok(response) if !response.status().is_server_error())
}

/// splitmix64 behind one shared counter: tower clones a policy's generator for every call, and a copied state would
/// give all calls the same jitter.
#[derive(Clone, Debug)]
struct Jitter(Arc<AtomicU64>);

impl Jitter {
    fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }
}

impl Rng for Jitter {
    fn next_u64(&mut self) -> u64 {
        const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        // Relaxed: each draw needs a value of its own, not an order.
        let mut z = self.0.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed).wrapping_add(GOLDEN_GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
