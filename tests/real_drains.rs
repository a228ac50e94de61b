//! What becomes of response bodies that break off, and of those that are discarded for a retry, and
//! of the connections that they come on.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use abate::{BreakerState, BufferedResponseLayer, ErrorKind, Fault, Jitter, Policy, Report, Stack};
use abate_tests::rig::tried;
use abate_tests::wire::{PATIENCE, Peer, Server, request};
use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceBuilder, ServiceExt};

type Test = anyhow::Result<()>;

/// Longer than a body is drained for.
const LONG: Duration = Duration::from_millis(300);

const THOUSAND: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const UNCHANGED: &str = "HTTP/1.1 304 Not Modified\r\ncontent-length: 1000\r\n\r\n";
const NOTHING: &str = "HTTP/1.1 204 No Content\r\n\r\n";

fn client<B>() -> Client<HttpConnector, B>
where
    B: Body<Data = Bytes> + Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

/// All defaults, with a first wait that is always the same.
fn steady(base: Duration) -> Policy {
    Policy::builder().with_base(base).with_jitter(Jitter::None).build().unwrap_or_default()
}

fn report<B>(response: &Response<B>) -> anyhow::Result<&Report> {
    response.extensions().get().context("there is no report")
}

/// Answers so many times with a head and 400 bytes, each on a connection that then ends; later with
/// all of 1,000.
fn breaking(head: &'static str, times: usize) -> std::io::Result<Server> {
    Server::start(move |mut peer| async move {
        peer.request().await?;
        if peer.number < times {
            peer.send(head.as_bytes()).await?;
            // In a chunk that is whole; the one without data that ends them all does not come.
            let chunk = if head == CHUNKED { "190\r\n" } else { "" };
            return peer.send(format!("{chunk}{}\r\n", "x".repeat(400)).as_bytes()).await;
        }
        peer.send(THOUSAND.as_bytes()).await?;
        peer.send(&[b'y'; 1_000]).await?;
        peer.serve(&[]).await
    })
}

// BR-10
#[tokio::test]
async fn a_body_that_breaks_off_is_an_error_to_its_reader_and_a_failure_to_the_breaker() -> Test {
    for head in [THOUSAND, CHUNKED] {
        let server = breaking(head, usize::MAX)?;
        let policy = Policy::builder().with_breaker_failure_rate(0.1).with_breaker_minimum_calls(2);
        let stack = Stack::new(policy.build()?);
        let (handle, service) = (stack.breaker(), stack.layer(client()));
        let (begun, mut calls) = (Instant::now(), 0);
        while handle.state() == BreakerState::Closed {
            assert!(begun.elapsed() < PATIENCE, "bodies break, and it does not open");
            let response = service.clone().oneshot(server.get()).await?;
            calls += 1;
            let error = response.into_body().collect().await.unwrap_err();
            assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
            assert_eq!(server.connections(), calls, "none of them is tried again");
            // The evidence has to span two seconds.
            sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

// BR-10
#[tokio::test]
async fn a_body_that_breaks_off_while_it_is_read_ahead_is_tried_again_as_one_unit() -> Test {
    for head in [THOUSAND, CHUNKED] {
        let server = breaking(head, 1)?;
        let stack = Stack::new(steady(Duration::from_millis(1)));
        let budget = stack.budget().context("a stack has one")?;
        let before = budget.tokens();
        let service = stack.layer(BufferedResponseLayer::default().layer(client()));
        let response = service.clone().oneshot(server.get()).await?;
        assert_eq!((tried(report(&response)?), server.connections()), (vec![0, 200], 2));
        let spent = before - budget.tokens();
        assert!((0.5..=1.1).contains(&spent), "one retry, one token: {spent}");
        assert_eq!(response.into_body().collect().await?.to_bytes(), vec![b'y'; 1_000]);
        service.oneshot(server.get()).await?;
        assert_eq!(server.connections(), 2, "what was read ahead leaves its connection in use");
    }
    Ok(())
}

// BR-10
#[tokio::test]
async fn a_body_that_breaks_off_each_time_ends_the_call_with_its_error() -> Test {
    for (head, method, attempts) in
        [(THOUSAND, Method::GET, 3), (CHUNKED, Method::GET, 3), (CHUNKED, Method::POST, 1)]
    {
        let server = breaking(head, usize::MAX)?;
        let stack = Stack::new(steady(Duration::from_millis(1)));
        let service = stack.layer(BufferedResponseLayer::default().layer(client()));
        let request = request(method, server.address, Full::<Bytes>::default());
        let error = service.oneshot(request).await.unwrap_err();
        assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
        assert_eq!((error.attempts() as usize, server.connections()), (attempts, attempts));
        assert!(error.source().is_some_and(<dyn std::error::Error>::is::<hyper::Error>));
    }
    Ok(())
}

#[tokio::test]
async fn what_has_no_body_is_not_read_ahead_whatever_its_length_says() -> Test {
    for (method, head) in
        [(Method::HEAD, THOUSAND), (Method::GET, UNCHANGED), (Method::GET, NOTHING)]
    {
        let server = Server::start(move |mut peer| async move {
            loop {
                peer.request().await?;
                peer.send(head.as_bytes()).await?;
            }
        })?;
        let service = BufferedResponseLayer::default().layer(client());
        for _ in 0..2 {
            let request = request(method.clone(), server.address, Full::<Bytes>::default());
            let response = timeout(PATIENCE, service.clone().oneshot(request)).await??;
            assert!(response.into_body().is_end_stream());
        }
        assert_eq!(server.connections(), 1);
    }
    Ok(())
}

/// What a body tells the server of itself.
#[derive(Default)]
struct Signals {
    /// Its head has come up.
    arrived: Notify,
    /// It was dropped.
    dropped: Notify,
}

/// A response body that tells when it is dropped.
struct Telling {
    body: Option<Incoming>,
    signals: Arc<Signals>,
}

impl Body for Telling {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        // The connection learns of it first.
        self.body = None;
        self.signals.dropped.notify_one();
    }
}

/// A call whose first answer is a 503 that `script` sends the body of; `base` is its wait.
async fn discarded<F>(
    base: Duration,
    script: fn(Peer, Arc<Signals>) -> F,
) -> anyhow::Result<(Server, Duration)>
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let signals = Arc::<Signals>::default();
    let told = Arc::clone(&signals);
    let server = Server::start(move |mut peer| {
        let told = Arc::clone(&told);
        async move {
            if peer.number > 0 {
                return peer.serve(&[]).await;
            }
            peer.request().await?;
            script(peer, told).await
        }
    })?;
    let service = ServiceBuilder::new()
        .layer(Stack::new(steady(base)))
        .map_response(move |response: Response<Incoming>| {
            signals.arrived.notify_one();
            response.map(|body| Telling { body: Some(body), signals: Arc::clone(&signals) })
        })
        .service(client());
    let response = timeout(PATIENCE, service.oneshot(server.get())).await??;
    assert_eq!(tried(report(&response)?), [503, 200]);
    let took = report(&response)?.elapsed();
    assert!(took < base * 5 + PATIENCE / 10, "it takes {took:?}");
    Ok((server, took))
}

/// Sends a body of that size, of which the second half comes when the client has the head. hyper
/// itself uses a connection again whose body came with its head.
async fn in_halves(peer: &mut Peer, size: usize, signal: &Notify) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 503 Busy\r\ncontent-length: {size}\r\n\r\n");
    peer.send(head.as_bytes()).await?;
    peer.send(&vec![b'x'; size / 2]).await?;
    signal.notified().await;
    peer.send(&vec![b'x'; size / 2]).await
}

/// Tries until it works: a machine that stalls for some milliseconds gets other chances.
async fn once(attempt: impl AsyncFn() -> anyhow::Result<bool>) -> Test {
    for _ in 0..20 {
        if attempt().await? {
            return Ok(());
        }
    }
    anyhow::bail!("not once")
}

#[tokio::test]
async fn a_discarded_body_that_comes_late_is_drained_and_its_connection_used_again() -> Test {
    once(async || {
        let (server, _) = discarded(LONG, |mut peer, signals| async move {
            in_halves(&mut peer, 60 * 1_024, &signals.arrived).await?;
            peer.serve(&[]).await
        })
        .await?;
        Ok(server.connections() == 1)
    })
    .await
}

#[tokio::test]
async fn a_discarded_body_that_is_long_is_dropped_at_once_with_its_connection() -> Test {
    once(async || {
        let (mut server, _) = discarded(LONG, |mut peer, signals| async move {
            let begun = Instant::now();
            // The second half comes when nobody wants it any more.
            let sent = in_halves(&mut peer, 200 * 1_024, &signals.dropped).await;
            peer.note(begun.elapsed().as_millis().to_string().into_bytes())?;
            sent
        })
        .await?;
        assert_eq!(server.connections(), 2);
        // Not when the time for draining is up.
        let after: u64 = String::from_utf8(server.note().await?)?.parse()?;
        Ok(after < 45)
    })
    .await
}

#[tokio::test]
async fn a_discarded_body_without_end_is_dropped_after_fifty_milliseconds_or_the_wait() -> Test {
    once(async || {
        for (base, least, most) in [(LONG, 50, 250), (Duration::from_millis(10), 10, 45)] {
            let (mut server, _) = discarded(base, |mut peer, signals| async move {
                peer.send(b"HTTP/1.1 503 Busy\r\ncontent-length: 9999999999\r\n\r\n").await?;
                signals.arrived.notified().await;
                let begun = Instant::now();
                let drip = async {
                    while peer.send(b"and on, ").await.is_ok() {
                        sleep(Duration::from_millis(1)).await;
                    }
                };
                tokio::select! {
                    () = drip => {}
                    () = signals.dropped.notified() => {}
                }
                peer.note(begun.elapsed().as_millis().to_string().into_bytes())
            })
            .await?;
            assert_eq!(server.connections(), 2);
            let after: u64 = String::from_utf8(server.note().await?)?.parse()?;
            assert!(after + 1 >= least, "dropped after {after} of {least} ms");
            if after > most {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await
}
