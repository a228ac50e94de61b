//! What the layers leave of the throughput of a real HTTP/1.1 client on loopback.
//!
//! ```text
//! cargo bench -p abate-benches --bench loopback -- --write docs/benchmarks.md
//! ```
//!
//! One server in a thread of its own; each client makes the same number of requests in each round, in turns, and its
//! rate is divided by that of the bare hyper-util client in the same round. That one takes part twice: how far its two
//! rates differ is the noise. Not a part of CI.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::thread;
use std::time::{Duration, Instant};

use abate_benches::{peers, report};
use bytes::Bytes;
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use http::{Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Empty, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::{Builder, Runtime};
use tower::{BoxError, Layer, ServiceExt};

/// How the requests are made.
struct Mode {
    name: &'static str,
    threads: usize,
    in_flight: usize,
    /// By each client in each round: about a quarter of a second.
    requests: usize,
    /// The share of the bare client's rate that ours should leave.
    goal: f64,
}

const MODES: [Mode; 3] = [
    Mode { name: "sequential", threads: 1, in_flight: 1, requests: 4_096, goal: 0.96 },
    Mode { name: "32 in flight", threads: 1, in_flight: 32, requests: 8_192, goal: 0.95 },
    Mode { name: "2 threads, 16 each", threads: 2, in_flight: 32, requests: 8_192, goal: 0.94 },
];

/// No round of a mode starts later than this after its first, so that the whole bench ends within three minutes.
const MODE_AT_MOST: Duration = Duration::from_secs(50);

/// Ours may be this much below tower's three layers.
const BELOW_TOWER_AT_MOST: f64 = 0.03;

/// What the layers leave of the throughput of a real HTTP/1.1 client on loopback.
#[derive(Debug, Parser)]
struct Args {
    /// Write the section of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Rounds in each mode.
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100))]
    rounds: usize,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes some requests one after the other, and reads the bodies to their ends.
type Requests = Box<dyn Fn(usize) -> BoxFuture<Result<(), BoxError>>>;

struct Client {
    name: &'static str,
    requests: Requests,
}

/// The first and the second of [`clients`]; ratios are to the first.
const BARE: usize = 0;
const BARE_AGAIN: usize = 1;

/// The third and the fourth.
const TOWER: usize = 2;
const OURS: usize = 3;

fn clients(uri: &Uri) -> Result<Vec<Client>, BoxError> {
    let over = |name, requests| Client { name, requests };
    let policy = abate::Policy::builder().with_concurrency(peers::CONCURRENCY).build()?;
    let clock = tick::Clock::new_tokio();
    let reqwest = reqwest::Client::builder().no_proxy().build()?;
    let retrying = peers::reqwest_retry(reqwest.clone()).build();
    let url = reqwest::Url::parse(&uri.to_string())?;
    Ok(vec![
        over("hyper-util, bare", requests(hyper_client(), uri)),
        over("the same again (A/A)", requests(hyper_client(), uri)),
        over("tower's three layers", requests(peers::tower_three(hyper_client())?, uri)),
        over(
            "abate `Stack`, six layers",
            requests(abate::Stack::new(policy).layer(hyper_client()), uri),
        ),
        over(
            "tower-resilience's four layers",
            requests(peers::tower_resilience_four(hyper_client())?, uri),
        ),
        over(
            "seatbelt's three layers",
            requests(peers::seatbelt_three(hyper_client(), &clock), uri),
        ),
        over("reqwest, bare", reqwest_requests(&url, move |url| reqwest.get(url).send())),
        over("reqwest-retry", reqwest_requests(&url, move |url| retrying.get(url).send())),
    ])
}

fn hyper_client<B>() -> legacy::Client<HttpConnector, B>
where
    B: Body<Data: Send> + Send,
{
    let mut connector = HttpConnector::new();
    // As reqwest does.
    connector.set_nodelay(true);
    legacy::Client::builder(TokioExecutor::new()).build(connector)
}

fn requests<S>(client: S, uri: &Uri) -> Requests
where
    S: peers::HttpClient<Empty<Bytes>>,
    S::Body: Body<Data: Send, Error: Into<BoxError>>,
{
    let uri = uri.clone();
    Box::new(move |requests| {
        let (mut client, uri) = (client.clone(), uri.clone());
        Box::pin(async move {
            for _ in 0..requests {
                let mut request = Request::new(Empty::new());
                *request.uri_mut() = uri.clone();
                let client = client.ready().await.map_err(Into::into)?;
                let response = client.call(request).await.map_err(Into::into)?;
                expect_ok(response.status())?;
                let mut body = pin!(response.into_body());
                while let Some(frame) = body.frame().await {
                    frame.map_err(Into::into)?;
                }
            }
            Ok(())
        })
    })
}

fn reqwest_requests<G, F, E>(url: &reqwest::Url, get: G) -> Requests
where
    G: Fn(reqwest::Url) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<reqwest::Response, E>> + Send,
    E: Into<BoxError> + Send,
{
    let url = url.clone();
    Box::new(move |requests| {
        let (get, url) = (get.clone(), url.clone());
        Box::pin(async move {
            for _ in 0..requests {
                let mut response = get(url.clone()).await.map_err(Into::into)?;
                expect_ok(response.status())?;
                while response.chunk().await?.is_some() {}
            }
            Ok(())
        })
    })
}

fn expect_ok(status: StatusCode) -> Result<(), BoxError> {
    if status == StatusCode::OK { Ok(()) } else { Err(format!("answered {status}").into()) }
}

fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    let uri = serve()?;
    let columns = MODES
        .iter()
        .map(|mode| {
            writeln!(io::stderr(), "{}: {} rounds", mode.name, args.rounds)?;
            measure(mode, &uri, args.rounds)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let markdown = markdown(&columns);
    writeln!(io::stdout(), "{markdown}")?;
    if let Some(path) = args.write {
        report::write_section(&path, "loopback", &markdown)?;
    }
    Ok(())
}

/// The rates of each client, in requests per second, by round.
struct Column {
    names: Vec<&'static str>,
    rates: Vec<Vec<f64>>,
}

fn measure(mode: &Mode, uri: &Uri, rounds: usize) -> Result<Column, BoxError> {
    let runtime = match mode.threads {
        1 => Builder::new_current_thread().enable_all().build()?,
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build()?,
    };
    let clients = {
        let _context = runtime.enter();
        clients(uri)?
    };
    // Opens the connections.
    for client in &clients {
        rate(&runtime, client, mode)?;
    }
    let start = Instant::now();
    let mut rates = vec![Vec::new(); clients.len()];
    for round in 0..rounds {
        if start.elapsed() > MODE_AT_MOST {
            writeln!(io::stderr(), "stopped after {round} rounds: they take too long")?;
            break;
        }
        for turn in 0..clients.len() {
            let number = (round + turn) % clients.len();
            rates[number].push(rate(&runtime, &clients[number], mode)?);
        }
    }
    Ok(Column { names: clients.iter().map(|client| client.name).collect(), rates })
}

/// Requests per second.
fn rate(runtime: &Runtime, client: &Client, mode: &Mode) -> Result<f64, BoxError> {
    runtime.block_on(async {
        let start = Instant::now();
        let each = mode.requests / mode.in_flight;
        let tasks: Vec<_> =
            (0..mode.in_flight).map(|_| tokio::spawn((client.requests)(each))).collect();
        for task in tasks {
            task.await??;
        }
        Ok((each * mode.in_flight) as f64 / start.elapsed().as_secs_f64())
    })
}

/// A server on a free port, in a thread that ends with the process.
fn serve() -> Result<Uri, BoxError> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || runtime.block_on(accept(listener)));
    Ok(format!("http://{address}/items/7").parse()?)
}

async fn accept(listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answers = service_fn(|_| async { Ok::<_, Infallible>(answer()) });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answers));
    }
}

fn answer() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(r#"{"item":7,"in_stock":12,"reserved":3}"#));
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("etag", "\"33a64df5\""),
        ("vary", "accept"),
        ("server", "stock"),
    ] {
        response
            .headers_mut()
            .insert(http::HeaderName::from_static(name), http::HeaderValue::from_static(value));
    }
    response
}

fn markdown(columns: &[Column]) -> String {
    let rounds = columns.iter().map(|column| column.rates[BARE].len()).min().unwrap_or(0);
    let mut text = format!(
        "## Loopback\n\n\
         What is left of the bare hyper-util client's rate, HTTP/1.1 on 127.0.0.1, bodies read to their ends: the \
         median of the ratios to its rate in the same round, {rounds} rounds or more in turns. The A/A line, the bare \
         client against itself, shows the noise (least to greatest).\n\n| client |"
    );
    for mode in &MODES {
        text.push_str(&format!(" {} |", mode.name));
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(MODES.len()));
    text.push('\n');
    let names = columns.first().map(|column| &column.names[..]).unwrap_or_default();
    for (client, name) in names.iter().enumerate() {
        let bold = if client == OURS { "**" } else { "" };
        text.push_str(&format!("| {bold}{name}{bold} |"));
        for column in columns {
            let cell = match client {
                BARE => format!("{:.0} requests/s", median(&column.rates[BARE])),
                BARE_AGAIN => {
                    let ratios = column.ratios(client);
                    let (least, greatest) = (ratios[0], ratios[ratios.len() - 1]);
                    format!("{:.3} ({least:.2} to {greatest:.2})", median(&ratios))
                }
                _ => format!("{:.3}", median(&column.ratios(client))),
            };
            text.push_str(&format!(" {cell} |"));
        }
        text.push('\n');
    }
    text.push('\n');
    for (mode, column) in MODES.iter().zip(columns) {
        text.push_str(&verdict(mode, column));
    }
    text.push_str(&format!("\n{}.\n", report::machine()));
    text
}

fn verdict(mode: &Mode, column: &Column) -> String {
    let ours = median(&column.ratios(OURS));
    let least = median(&column.ratios(TOWER)) - BELOW_TOWER_AT_MOST;
    let (name, goal) = (mode.name, mode.goal);
    let holds = if ours >= least { "holds" } else { "**missed**" };
    let reached = if ours >= goal { "reached" } else { "not reached" };
    format!(
        "* {name}: ours {ours:.3}; must be {least:.3} (tower's − {BELOW_TOWER_AT_MOST}): {holds}; goal {goal}: {reached}\n"
    )
}

impl Column {
    /// To the bare client, sorted.
    fn ratios(&self, client: usize) -> Vec<f64> {
        let rates = self.rates[client].iter().zip(&self.rates[BARE]);
        let mut ratios: Vec<_> = rates.map(|(rate, bare)| rate / bare).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}
