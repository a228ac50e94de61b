//! What a budget for each process is worth to a fleet, and what one for all of them is.
//!
//! ```text
//! cargo run --release -p abate-examples --example fleet_redis
//! ```
//!
//! Real processes, each with a client of its own, call one origin: three seconds in which all is well, which are not
//! counted, then an outage. The shared budget lives on a redis-server or valkey-server, which is started here on a
//! free loopback port and ended again; `ABATE_REDIS` may say where it is.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use abate::fleet::{FLOOR, Fleet, Terms};
use abate::{BudgetHandle, ErrorKind, Policy, Ratio, Report, RetryLayer, StopReason};
use abate_redis::{Endpoint, RedisStore};
use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Parser;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tower::{Layer, ServiceExt};

/// Time in which all is well, and each process earns.
const BEFORE: u32 = 3;

#[derive(Debug, Parser)]
#[command(about = "Four fleets and one outage: no budget, one for each process, one for all")]
struct Args {
    /// Print the last line, which is JSON, alone.
    #[arg(long)]
    json: bool,
    /// Processes in the fleet.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    processes: u32,
    /// Calls per second of each.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500))]
    rate: u32,
    /// Length of the outage, in seconds.
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=60))]
    seconds: u32,
    /// What one of the processes is told, in JSON.
    #[arg(long, hide = true)]
    worker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Budget {
    None,
    Process,
    Fleet,
}

#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    budget: Budget,
    fails: bool,
    rate: u32,
    seconds: u32,
    origin: String,
    store: String,
    fleet: String,
}

/// What a process tells at its end.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Outcome {
    calls: u64,
    /// Retries that its budget refused.
    denied: u64,
}

#[derive(Debug, Serialize)]
struct Mode {
    name: &'static str,
    processes: u32,
    amplification: f64,
    denied: u64,
}

#[derive(Debug, Serialize)]
struct Modes {
    modes: Vec<Mode>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(orders) = &args.worker {
        return work(serde_json::from_str(orders)?).await;
    }
    let server = Server::start()?;
    let mut modes = Vec::new();
    for (name, budget, all_fail) in [
        ("none", Budget::None, true),
        ("process", Budget::Process, true),
        ("fleet", Budget::Fleet, true),
        ("fleet-one-failing", Budget::Fleet, false),
    ] {
        let mode = run(&args, &server, name, budget, all_fail).await?;
        if !args.json {
            let Mode { amplification, denied, .. } = &mode;
            println!("{name:>18}: {amplification:.2} attempts a call, {denied} retries denied");
        }
        modes.push(mode);
    }
    println!("{}", serde_json::to_string(&Modes { modes })?);
    Ok(())
}

/// One fleet, from its start to its end.
async fn run(
    args: &Args,
    server: &Server,
    name: &'static str,
    budget: Budget,
    all_fail: bool,
) -> anyhow::Result<Mode> {
    let (origin, seen) = abate_examples::half_down().await?;
    let mut workers = JoinSet::new();
    for number in 0..args.processes {
        let orders = Orders {
            budget,
            fails: all_fail || number == 0,
            rate: args.rate,
            seconds: args.seconds,
            origin: origin.to_string(),
            store: format!("redis://127.0.0.1:{}", server.port),
            fleet: name.to_owned(),
        };
        let mut process = tokio::process::Command::new(std::env::current_exe()?);
        process.arg("--worker").arg(serde_json::to_string(&orders)?).kill_on_drop(true);
        workers.spawn(async move { process.output().await });
    }
    let mut sum = Outcome::default();
    while let Some(ended) = workers.join_next().await {
        let output = ended??;
        if !output.status.success() {
            bail!("a process ended badly: {}", String::from_utf8_lossy(&output.stderr));
        }
        let Outcome { calls, denied } = serde_json::from_slice(&output.stdout)?;
        sum.calls += calls;
        sum.denied += denied;
    }
    // Relaxed: those who counted have ended.
    let attempts = f64::from(seen.load(Ordering::Relaxed));
    let amplification = attempts / sum.calls as f64;
    Ok(Mode { name, processes: args.processes, amplification, denied: sum.denied })
}

type Http = Client<HttpConnector, abate::ReplayBody<Empty<Bytes>>>;

/// One process of the fleet.
async fn work(orders: Orders) -> anyhow::Result<()> {
    // One retry: with two, a single process could ask for more than all that the others earn.
    let policy = Policy::builder().with_attempts(2).build()?;
    let store = RedisStore::new(Endpoint::new(&orders.store, &orders.fleet)?);
    let fleet = Fleet::new(store);
    let retries = RetryLayer::new(policy.clone());
    let retries = match orders.budget {
        Budget::None => retries.without_budget(),
        Budget::Process => retries.with_budget(BudgetHandle::new(&policy)),
        Budget::Fleet => {
            tokio::spawn(fleet.drive());
            let terms = Terms::new(Ratio::new(0.2)?, FLOOR)?;
            retries.with_budget(fleet.budget("origin", &policy, terms)?)
        }
    };
    let client: Http = Client::builder(TokioExecutor::new()).build_http();
    let service = retries.layer(client);
    let during = if orders.fails { "down" } else { "up" };

    let mut ticks = interval(Duration::from_secs(1) / orders.rate);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut calls = JoinSet::new();
    for (path, seconds) in [("before", BEFORE), (during, orders.seconds)] {
        let url: Uri = format!("{}{path}", orders.origin).parse()?;
        for _ in 0..seconds * orders.rate {
            ticks.tick().await;
            let call = service.clone().oneshot(Request::get(url.clone()).body(Empty::new())?);
            calls.spawn(async move { (path != "before", was_denied(call.await)) });
        }
    }
    let mut outcome = Outcome::default();
    while let Some(call) = calls.join_next().await {
        let (counts, denied) = call?;
        outcome.calls += u64::from(counts);
        outcome.denied += u64::from(counts && denied);
    }
    fleet.shutdown().await;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// Whether the budget refused the retry, at once or after a wait.
fn was_denied<B>(result: Result<http::Response<B>, abate::Error>) -> bool {
    let reason = match &result {
        Ok(response) => response.extensions().get::<Report>().and_then(Report::stop_reason),
        Err(error) => match error.kind() {
            ErrorKind::RetryRefused(reason) => Some(reason),
            _ => None,
        },
    };
    matches!(reason, Some(StopReason::Budget | StopReason::Pace))
}

/// A server on a free port, which keeps nothing and ends with its handle.
struct Server {
    port: u16,
    process: Child,
}

impl Server {
    fn start() -> anyhow::Result<Self> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let own = std::env::var("ABATE_REDIS").ok();
        let names = own.into_iter().chain(["redis-server".to_owned(), "valkey-server".to_owned()]);
        let process = names
            .filter_map(|name| {
                Command::new(name)
                    .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
                    .args(["--save", "", "--appendonly", "no"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .spawn()
                    .ok()
            })
            .next()
            .context(
                "no redis-server and no valkey-server here: install one (Debian: apt-get install \
                 redis-server), or set ABATE_REDIS to its path",
            )?;
        let mut server = Self { port, process };
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("the server ended at once: {status}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only if it has ended by itself is there nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
