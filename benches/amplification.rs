//! How many attempts reach a failing dependency for each call of the user.
//!
//! ```text
//! cargo bench -p abate-benches --bench amplification -- --write docs/benchmarks.md
//! ```
//!
//! One process makes 1,000 calls a second. For 10 s the dependency is healthy; for the next 60 s a share of the
//! attempts is answered 503. Time is tokio's paused clock, so the minute takes a moment; peers with a clock of their
//! own run in real time meanwhile. Whether the `n`-th attempt of a call fails is the same for every client.

use std::io::{self, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use abate_benches::outage::{Dependency, Figures, GAP, HEALTH, LATENCY, RATE, TROUBLE};
use abate_benches::{peers, report};
use bytes::Bytes;
use clap::Parser;
use http::{Extensions, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use tick::ClockControl;
use tokio::runtime::Builder;
use tokio::time::{interval, sleep_until};
use tower::retry::RetryLayer;
use tower::{BoxError, Layer, ServiceExt};
use tower_resilience::retry::RetryBudgetBuilder;

/// Shares of the attempts that fail, in percent.
const FAULTS: [u64; 3] = [10, 50, 100];

/// Attempts per call during the outage, at the most.
const MEAN_AT_MOST: f64 = 1.05;

/// Attempts in any second of the outage per call due in a second, at the most.
const WORST_AT_MOST: f64 = 1.3;

/// How many attempts reach a failing dependency for each call of the user.
#[derive(Debug, Parser)]
struct Args {
    /// Write the section of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Leave out the clients that need real time.
    #[arg(long)]
    simulated: bool,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Makes the call of this number; whether it succeeded.
type Call = Box<dyn FnMut(usize) -> BoxFuture<'static, bool>>;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[derive(Clone, Copy)]
struct Client {
    name: &'static str,
    clock: Clock,
    /// What must hold for ours: the share of the calls that succeed at 10 % of faults.
    success_at_least: Option<f64>,
    build: fn(Arc<Dependency>) -> Result<Call, BoxError>,
}

#[derive(Clone, Copy, PartialEq)]
enum Clock {
    Simulated,
    Real,
}

const CLIENTS: [Client; 10] = [
    Client {
        name: "abate `Stack`",
        clock: Clock::Simulated,
        success_at_least: Some(0.998),
        build: |dependency| {
            let stack = abate::Stack::new(abate::Policy::default()).with_seed(1);
            Ok(calls(stack.layer(dependency.client())))
        },
    },
    Client {
        name: "abate `Stack`, budget of 10 %",
        clock: Clock::Simulated,
        success_at_least: Some(0.985),
        build: |dependency| {
            let policy = abate::Policy::builder().with_budget_ratio(0.1).build()?;
            let stack = abate::Stack::new(policy).with_seed(1);
            Ok(calls(stack.layer(dependency.client())))
        },
    },
    Client {
        name: "abate `RetryLayer` alone",
        clock: Clock::Simulated,
        success_at_least: Some(0.998),
        build: |dependency| {
            let retry = abate::RetryLayer::new(abate::Policy::default()).with_seed(1);
            Ok(calls(retry.layer(dependency.client())))
        },
    },
    Client {
        name: "tower `Retry`, 3 attempts, `TpsBudget`",
        clock: Clock::Simulated,
        success_at_least: None,
        build: |dependency| {
            let retry = RetryLayer::new(peers::TowerPolicy::new(1)?);
            Ok(calls(retry.layer(dependency.client())))
        },
    },
    Client {
        name: "tower-resilience retry > breaker",
        clock: Clock::Real,
        success_at_least: None,
        build: |dependency| Ok(calls(peers::tower_resilience_two(dependency.client(), None)?)),
    },
    Client {
        name: "the same with the budget of its README",
        clock: Clock::Real,
        success_at_least: None,
        build: |dependency| {
            let budget =
                RetryBudgetBuilder::new().token_bucket().tokens_per_second(10.0).max_tokens(100);
            let budget = Some(budget.build()?);
            Ok(calls(peers::tower_resilience_two(dependency.client(), budget)?))
        },
    },
    Client {
        name: "reqwest-retry, 3 retries",
        clock: Clock::Simulated,
        success_at_least: None,
        build: |dependency| Ok(reqwest_calls(dependency)),
    },
    Client {
        name: "seatbelt retry",
        clock: Clock::Simulated,
        success_at_least: None,
        build: |dependency| Ok(calls(peers::seatbelt_one(dependency.client(), &tick_clock()))),
    },
    Client {
        name: "seatbelt retry > breaker > timeout",
        clock: Clock::Simulated,
        success_at_least: None,
        build: |dependency| Ok(calls(peers::seatbelt_three(dependency.client(), &tick_clock()))),
    },
    Client {
        name: "no retries",
        clock: Clock::Simulated,
        success_at_least: None,
        build: |dependency| Ok(calls(dependency.client())),
    },
];

fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    let clients: Vec<_> = CLIENTS
        .into_iter()
        .filter(|client| client.clock == Clock::Simulated || !args.simulated)
        .collect();
    let rows = measure(&clients)?;
    let markdown = markdown(&rows);
    writeln!(io::stdout(), "{markdown}")?;
    if let Some(path) = args.write {
        report::write_section(&path, "amplification", &markdown)?;
    }
    Ok(())
}

/// The figures of each client, in the order of [`FAULTS`].
struct Row {
    client: Client,
    figures: Vec<Figures>,
}

fn measure(clients: &[Client]) -> Result<Vec<Row>, BoxError> {
    if clients.iter().any(|client| client.clock == Clock::Real) {
        writeln!(
            io::stderr(),
            "Some need real time: {} s, while the others run.",
            HEALTH + TROUBLE
        )?;
    }
    thread::scope(|scope| {
        // Everything real starts at once, each on a thread of its own, and mostly sleeps.
        let real: Vec<_> = clients
            .iter()
            .filter(|client| client.clock == Clock::Real)
            .flat_map(|&client| FAULTS.map(|faults| scope.spawn(move || run(client, faults))))
            .collect();
        let mut real = real.into_iter();
        let mut rows = Vec::new();
        for &client in clients {
            let mut figures = Vec::new();
            for faults in FAULTS {
                figures.push(match client.clock {
                    Clock::Simulated => run(client, faults)?,
                    Clock::Real => {
                        let thread = real.next().ok_or("a thread is missing")?;
                        thread.join().map_err(|_| "a thread panicked")??
                    }
                });
                writeln!(io::stderr(), "{}, {faults} % faults: done", client.name)?;
            }
            rows.push(Row { client, figures });
        }
        Ok(rows)
    })
}

/// Ten healthy seconds and sixty others, on one thread.
fn run(client: Client, faults: u64) -> Result<Figures, BoxError> {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_time().start_paused(client.clock == Clock::Simulated);
    runtime.build()?.block_on(async {
        let dependency = Arc::new(Dependency::new(faults));
        let mut call = (client.build)(Arc::clone(&dependency))?;
        let mut running = Vec::new();
        for (number, due) in (0..(HEALTH + TROUBLE) * RATE).zip(0_u32..) {
            // From the start, not from the call before: the loop catches up when it woke late.
            sleep_until(dependency.start() + GAP * due).await;
            running.push(tokio::spawn(call(number)));
        }
        let mut successes = 0_u32;
        for (number, call) in running.into_iter().enumerate() {
            successes += u32::from(call.await? && number >= HEALTH * RATE);
        }
        Ok(dependency.figures(successes))
    })
}

fn calls<S>(service: S) -> Call
where
    S: peers::HttpClient<Empty<Bytes>>,
{
    Box::new(move |number| {
        let service = service.clone();
        Box::pin(async move {
            let Ok(uri) = address(number).parse::<Uri>() else { return false };
            let mut request = Request::new(Empty::new());
            *request.uri_mut() = uri;
            let result = service.oneshot(request).await;
            result.is_ok_and(|response| response.status() == StatusCode::OK)
        })
    })
}

/// reqwest-retry over a middleware that answers in reqwest's place: a paused clock and sockets don't go together.
fn reqwest_calls(dependency: Arc<Dependency>) -> Call {
    let answer = middleware(move |request, _, _| {
        let dependency = Arc::clone(&dependency);
        Box::pin(async move {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = dependency.answer(request.url().path()).await;
            Ok(response.into())
        })
    });
    let client = peers::reqwest_retry(reqwest::Client::new()).with(answer).build();
    Box::new(move |number| {
        let client = client.clone();
        Box::pin(async move {
            let result = client.get(address(number)).send().await;
            result.is_ok_and(|response| response.status() == StatusCode::OK)
        })
    })
}

/// Tells the compiler what the closure is: a middleware takes any lifetime.
fn middleware<F>(middleware: F) -> F
where
    F: for<'a> Fn(
        reqwest::Request,
        &'a mut Extensions,
        reqwest_middleware::Next<'a>,
    ) -> BoxFuture<'a, reqwest_middleware::Result<reqwest::Response>>,
{
    middleware
}

fn address(call: usize) -> String {
    format!("http://stock.internal/items/{call}")
}

/// seatbelt's clock, moved along with tokio's.
fn tick_clock() -> tick::Clock {
    let control = ClockControl::new();
    let clock = control.to_clock();
    tokio::spawn(async move {
        let mut ticks = interval(GAP);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            control.advance(GAP);
        }
    });
    clock
}

fn markdown(rows: &[Row]) -> String {
    let mut text = format!(
        "## Amplification\n\n\
         Attempts that reach the dependency per call, their number in the busiest second per call due in a second, \
         and the share of calls answered 200. {HEALTH} s of health at {RATE} calls a second, then {TROUBLE} s in \
         which a share of the attempts is answered 503, after {LATENCY:?} like the rest. Everything by default; the \
         peers that know no statuses are told to retry from 500. Time is simulated; a client with \\* reads the \
         system's clock, so it ran in real time. reqwest-retry and seatbelt take no seed: their busiest second, and \
         what seatbelt's breaker lets through, differ a little from run to run.\n\n| client |"
    );
    for faults in FAULTS {
        text.push_str(&format!(" {faults} % faults: mean | worst second | success |"));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(3 * FAULTS.len()));
    text.push('\n');
    for Row { client, figures } in rows {
        let star = if client.clock == Clock::Real { " \\*" } else { "" };
        let bold = if client.success_at_least.is_some() { "**" } else { "" };
        text.push_str(&format!("| {bold}{}{bold}{star} |", client.name));
        for Figures { mean, worst, success } in figures {
            text.push_str(&format!(" {mean:.3} | {worst:.2} | {:.2} % |", success * 100.0));
        }
        text.push('\n');
    }
    text.push_str(&format!("\n{NOTE}\n\n{}\n{}.\n", targets(rows), report::machine()));
    text
}

/// What a reader would otherwise take for a mistake in the table.
const NOTE: &str = "tower-resilience 0.13 opens late because its default window, of the last 100 calls by its name, \
     counts all calls since the breaker's last change of state (`evaluate_window` in `circuit.rs`): after 10,000 \
     successes it takes as many failures to reach half. seatbelt's breaker opens at 10 % of failures by default.";

fn targets(rows: &[Row]) -> String {
    let mut text = "| what must hold | client | is |  |\n|---|---|---|---|\n".to_owned();
    for Row { client, figures } in rows {
        let (Some(success), &[few, _, all]) = (client.success_at_least, &figures[..]) else {
            continue;
        };
        let targets = [
            (
                format!("at most {MEAN_AT_MOST} attempts per call at 100 %"),
                all.mean,
                all.mean <= MEAN_AT_MOST,
            ),
            (
                format!("at most {WORST_AT_MOST} of them in any second"),
                all.worst,
                all.worst <= WORST_AT_MOST,
            ),
            (
                format!("at least {success} of calls succeed at 10 %"),
                few.success,
                few.success >= success,
            ),
        ];
        for (what, is, holds) in targets {
            let verdict = if holds { "holds" } else { "**missed**" };
            text.push_str(&format!("| {what} | {} | {is:.4} | {verdict} |\n", client.name));
        }
    }
    text
}
