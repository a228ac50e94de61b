//! A tonic client whose server stumbles, and is down for a while: what do its callers see?
//!
//! ```text
//! cargo run -p abate-examples --example tonic_client
//! ```
//!
//! Half of the calls may be repeated and say so; the others only if the server asks for it. All of it
//! runs on loopback, and ends by itself after eight seconds.

#![expect(clippy::print_stdout, reason = "the outcome is for the reader of the terminal")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use abate::grpc::{GrpcStatus, GrpcStatusLayer};
use abate::{Idempotent, Policy, ReplayBody, Stack, StackService};
use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataValue;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tower::util::MapRequest;
use tower::{Layer, service_fn};

/// Calls per second, of each kind.
const RATE: u32 = 40;
const SECONDS: u32 = 8;
/// The server answers with UNAVAILABLE in these seconds.
const DOWN: std::ops::Range<u32> = 2..5;

/// tonic's channel takes tonic's own body alone.
type Line = MapRequest<Channel, fn(http::Request<ReplayBody<Body>>) -> http::Request<Body>>;

/// As tonic-build would write it, but for the codec, over the stack instead of over the channel.
#[derive(Clone)]
struct StockClient(tonic::client::Grpc<StackService<GrpcStatus<Line>>>);

impl StockClient {
    fn new(channel: Channel, stack: &Stack) -> Self {
        let line: Line = MapRequest::new(channel, |request| request.map(Body::new));
        Self(tonic::client::Grpc::new(stack.layer(GrpcStatusLayer::new().layer(line))))
    }

    /// How many there are: asking twice does no harm.
    async fn count(mut self) -> Result<Response<Bytes>, Status> {
        let mut request = Request::new(Bytes::from_static(b"boots"));
        request.extensions_mut().insert(Idempotent(true));
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))?;
        self.0.unary(request, PathAndQuery::from_static("/shop.Stock/Count"), Raw).await
    }

    /// Sets one aside, and another one if it is sent twice.
    async fn reserve(mut self) -> Result<Response<Bytes>, Status> {
        let request = Request::new(Bytes::from_static(b"boots"));
        self.0.ready().await.map_err(|error| Status::from_error(error.into()))?;
        self.0.unary(request, PathAndQuery::from_static("/shop.Stock/Reserve"), Raw).await
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let down = Arc::new(AtomicBool::new(false));
    let server = serve(Arc::clone(&down))?;

    let policy = Policy::builder().with_grpc().with_total_timeout(Duration::from_secs(2));
    let stack = Stack::new(policy.with_attempt_timeout(Duration::from_secs(1)).build()?);
    let channel = Channel::from_shared(format!("http://{server}"))?.connect_lazy();
    call_for_a_while(&StockClient::new(channel, &stack), &down).await;
    Ok(())
}

/// One call in thirteen fails, and one is asked to come again, while the server is up.
fn serve(down: Arc<AtomicBool>) -> anyhow::Result<SocketAddr> {
    let calls = Arc::new(AtomicU32::new(0));
    let handler = service_fn(move |_: Request<Bytes>| {
        // Relaxed: a count and a switch, each for itself.
        let (call, down) = (calls.fetch_add(1, Ordering::Relaxed), down.load(Ordering::Relaxed));
        std::future::ready(match call % 13 {
            _ if down => Err(Status::unavailable("closing down")),
            3 => Err(Status::unavailable("one moment")),
            8 => Err(come_again(Duration::from_millis(60))),
            _ => Ok(Response::new(Bytes::from_static(b"seven"))),
        })
    });
    let service = service_fn(move |request| {
        let handler = handler.clone();
        async { Ok::<_, Infallible>(tonic::server::Grpc::new(Raw).unary(handler, request).await) }
    });
    let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = incoming.local_addr()?;
    tokio::spawn(Server::builder().serve_with_incoming(service, incoming));
    Ok(address)
}

/// A refusal with leave to repeat the call, and when.
fn come_again(after: Duration) -> Status {
    let mut status = Status::resource_exhausted("busy");
    let millis = MetadataValue::from(after.as_millis() as u64);
    status.metadata_mut().insert("grpc-retry-pushback-ms", millis);
    status
}

/// Makes calls at an even rate, and prints what came of those of each second.
async fn call_for_a_while(stock: &StockClient, down: &AtomicBool) {
    let mut ticks = interval(Duration::from_secs(1) / RATE);
    ticks.tick().await; // the first comes at once
    let mut lines = JoinSet::new();
    println!("second  server    {:60}  calls that may not", "calls that may be repeated");
    for second in 0..SECONDS {
        let is_down = DOWN.contains(&second);
        // Relaxed: see above.
        down.store(is_down, Ordering::Relaxed);
        let (mut counts, mut reservations) = (JoinSet::new(), JoinSet::new());
        for _ in 0..RATE {
            counts.spawn(timed(stock.clone().count()));
            reservations.spawn(timed(stock.clone().reserve()));
            ticks.tick().await;
        }
        let server = if is_down { "down" } else { "stumbles" };
        // Printed when the last of them is answered, while those of the next second go out.
        lines.spawn(async move {
            let counts = summary(counts.join_all().await);
            let reservations = summary(reservations.join_all().await);
            println!("{second:>6}  {server:8}  {counts:60}  {reservations}");
        });
    }
    lines.join_all().await;
}

async fn timed(call: impl Future<Output = Result<Response<Bytes>, Status>>) -> (String, Duration) {
    let start = Instant::now();
    let seen = match call.await {
        Ok(_) => "ok".to_owned(),
        // What a layer of ours refused or ended stands in the source of the status.
        Err(status) => match abate::Error::find(&status) {
            Some(error) => format!("{:?}", error.kind()),
            None => format!("{:?}", status.code()),
        },
    };
    (seen, start.elapsed())
}

/// Such as `32 × ok in 94 ms, 8 × Unavailable in 1 ms`.
fn summary(calls: Vec<(String, Duration)>) -> String {
    let mut kinds = BTreeMap::<String, (u32, Duration)>::new();
    for (seen, took) in calls {
        let (count, longest) = kinds.entry(seen).or_default();
        *count += 1;
        *longest = took.max(*longest);
    }
    let kind = |(seen, (count, longest)): (String, (u32, Duration))| {
        format!("{count} × {seen} in {} ms", longest.as_millis())
    };
    kinds.into_iter().map(kind).collect::<Vec<_>>().join(", ")
}

/// Messages as they are; yours come from prost.
#[derive(Debug, Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
