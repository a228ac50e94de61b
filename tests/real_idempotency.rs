//! What a server sees of requests that may not be done twice, byte by byte.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abate::{
    Error, Fault, IdempotencyKeyLayer, Jitter, Policy, ReplayBody, Report, RetryLayer, Stack,
    StopReason,
};
use abate_tests::events::Events;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::util::Either;
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_http::set_header::SetRequestHeaderLayer;
use tracing::Level;

type Test = anyhow::Result<()>;

const PATIENCE: Duration = Duration::from_secs(20);
const BODY: &str = "7 EUR";

/// What becomes of a request that was read to its end.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Status(u16),
    /// The connection is reset: it may have been carried out.
    Reset,
}
use Reply::{Reset, Status};

/// A server that gives these replies in turn, then 200 for ever, and keeps the heads that it saw.
#[derive(Clone, Default)]
struct Server {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    heads: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Server {
    async fn start(replies: &[Reply]) -> io::Result<(Self, SocketAddr)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok((Self::listening(listener, replies), address))
    }

    fn listening(listener: TcpListener, replies: &[Reply]) -> Self {
        let server = Self {
            replies: Arc::new(Mutex::new(replies.iter().copied().collect())),
            ..Self::default()
        };
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(BufReader::new(stream)));
            }
        });
        server
    }

    async fn serve(self, mut stream: BufReader<TcpStream>) -> io::Result<()> {
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await? == 0 {
                    return Ok(());
                }
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            stream.read_exact(&mut [0; BODY.len()]).await?;
            lock(&self.heads).push(head);
            let reply = lock(&self.replies).pop_front().unwrap_or(Status(200));
            match reply {
                Status(code) => {
                    let answer = format!("HTTP/1.1 {code} Told\r\ncontent-length: 0\r\n\r\n");
                    stream.write_all(answer.as_bytes()).await?;
                }
                // Nothing is left unread: it is the lingering that makes a reset of the close.
                Reset => return stream.get_ref().set_zero_linger(),
            }
        }
    }

    /// The values of a header, of each request that came.
    fn values(&self, name: &str) -> Vec<Vec<String>> {
        let of = |head: &Vec<String>| {
            let lines = head.iter().skip(1).filter_map(|line| line.split_once(": "));
            lines.filter(|(it, _)| *it == name).map(|(_, value)| value.to_owned()).collect()
        };
        lock(&self.heads).iter().map(of).collect()
    }

    /// How many requests came.
    fn requests(&self) -> usize {
        lock(&self.heads).len()
    }

    /// The one key that every request carried, none left out.
    fn key(&self) -> String {
        let keys = self.values("idempotency-key");
        let first = keys.first().and_then(|it| it.first()).cloned().unwrap_or_default();
        assert!(keys.iter().all(|it| *it == [first.clone()]), "{keys:?}");
        first
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

type Http = Client<HttpConnector, ReplayBody<Full<Bytes>>>;

fn client() -> Http {
    Client::builder(TokioExecutor::new()).build_http()
}

/// The default policy, but for the times, which are always the same.
fn policy() -> anyhow::Result<Policy> {
    Ok(Policy::builder().with_base(Duration::from_millis(20)).with_jitter(Jitter::None).build()?)
}

fn post(address: SocketAddr) -> http::Result<Request<Full<Bytes>>> {
    Request::post(format!("http://{address}/payments")).body(Full::from(BODY))
}

/// A POST through the default stack, with or without a key from above; its status, or what its error
/// means.
async fn pay(address: SocketAddr, with_key: bool) -> anyhow::Result<Result<StatusCode, Fault>> {
    let stack = Stack::new(policy()?).layer(client());
    let service = match with_key {
        true => Either::Left(IdempotencyKeyLayer::new().layer(stack)),
        false => Either::Right(stack),
    };
    let ended = timeout(PATIENCE, service.oneshot(post(address)?)).await?;
    Ok(ended.map(|response| response.status()).map_err(|error| {
        let stopped = error.report().and_then(Report::stop_reason);
        assert_eq!(stopped, Some(StopReason::NotIdempotent), "{error:?}");
        error.fault()
    }))
}

// ID-01: a, b, c and d
#[tokio::test]
async fn a_post_is_sent_once_unless_it_was_refused_or_has_a_key() -> Test {
    let code = |code| StatusCode::from_u16(code);
    for (reply, without_key, sent) in [
        (Reset, Err(Fault::Ambiguous), 1),
        (Status(502), Ok(code(502)?), 1),
        (Status(503), Ok(code(503)?), 1),
        (Status(429), Ok(code(200)?), 2),
    ] {
        let (server, address) = Server::start(&[reply]).await?;
        assert_eq!(pay(address, false).await?, without_key, "{reply:?}");
        assert_eq!(server.requests(), sent, "{reply:?}");
        assert_eq!(server.values("idempotency-key").concat(), [""; 0]);

        let (server, address) = Server::start(&[reply]).await?;
        assert_eq!(pay(address, true).await?, Ok(code(200)?), "{reply:?}");
        assert_eq!((server.requests(), server.key().len()), (2, 36), "{reply:?}");
    }
    Ok(())
}

// ID-01: e
#[tokio::test]
async fn a_post_that_was_never_sent_is_sent_again() -> Test {
    for with_key in [false, true] {
        // Bound, so that nobody else gets the port, and not listening.
        let closed = TcpSocket::new_v4()?;
        closed.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let (address, refused) = (closed.local_addr()?, Arc::new(Notify::new()));
        let noted = Arc::clone(&refused);
        let policy =
            Policy::builder().with_base(Duration::from_millis(250)).with_jitter(Jitter::None);
        let client = client().map_err(move |error| {
            noted.notify_one();
            error
        });
        let stack = Stack::new(policy.with_attempts(6).build()?).layer(client);
        let service = match with_key {
            true => Either::Left(IdempotencyKeyLayer::new().layer(stack)),
            false => Either::Right(stack),
        };
        let call = tokio::spawn(timeout(PATIENCE, service.oneshot(post(address)?)));
        timeout(PATIENCE, refused.notified()).await?;
        let server = Server::listening(closed.listen(4)?, &[]);
        assert_eq!(call.await???.status(), 200);
        assert_eq!(server.requests(), 1, "once, and whole");
        let keys = server.values("idempotency-key").concat();
        assert_eq!(keys.len(), usize::from(with_key), "{keys:?}");
    }
    Ok(())
}

// ID-03
#[tokio::test]
async fn all_attempts_of_a_call_carry_one_key() -> Test {
    for replies in [[Status(503), Status(503)], [Reset, Reset], [Status(500), Reset]] {
        let (server, address) = Server::start(&replies).await?;
        assert_eq!(pay(address, true).await?, Ok(StatusCode::OK));
        let first = server.key();
        assert_eq!((server.requests(), first.len()), (3, 36));
        assert_eq!(pay(address, true).await?, Ok(StatusCode::OK));
        let of_next = server.values("idempotency-key").pop();
        assert!(of_next.is_some_and(|it| it != [first]), "another call has another");
    }
    Ok(())
}

// ID-03: the caller's own
#[tokio::test]
async fn the_callers_key_goes_out_as_it_is_on_every_attempt() -> Test {
    let (server, address) = Server::start(&[Status(503), Reset]).await?;
    let mut request = post(address)?;
    request.headers_mut().insert("idempotency-key", HeaderValue::from_static("\"order 7\";v=1"));
    let service = IdempotencyKeyLayer::new().layer(Stack::new(policy()?).layer(client()));
    assert_eq!(timeout(PATIENCE, service.oneshot(request)).await??.status(), 200);
    assert_eq!((server.requests(), server.key()), (3, "\"order 7\";v=1".to_owned()));
    Ok(())
}

// ID-03: made below the retry
#[tokio::test]
async fn below_the_retry_no_key_goes_out_and_that_is_told() -> Test {
    let events = Events::listen();
    let (server, address) = Server::start(&[Status(429), Status(429)]).await?;
    let service = Stack::new(policy()?).layer(IdempotencyKeyLayer::new().layer(client()));
    assert_eq!(timeout(PATIENCE, service.oneshot(post(address)?)).await??.status(), 200);
    assert_eq!(server.values("idempotency-key"), [const { Vec::<String>::new() }; 3]);
    let warned = events.take().into_iter().filter(|event| event.level == Level::WARN);
    assert_eq!(warned.count(), 1);
    Ok(())
}

// ID-04
#[tokio::test]
async fn headers_are_not_more_with_each_attempt() -> Test {
    let (server, address) = Server::start(&[Status(503), Status(503), Status(503)]).await?;
    let service = ServiceBuilder::new()
        .layer(IdempotencyKeyLayer::new())
        .layer(RetryLayer::new(policy()?).with_attempt_header(HeaderName::from_static("x-attempt")))
        .layer(SetRequestHeaderLayer::appending(AUTHORIZATION, HeaderValue::from_static("Basic 7")))
        .service(client());
    let mut request = post(address)?;
    request.headers_mut().insert("x-attempt", HeaderValue::from_static("9"));
    let response: Result<_, Error> = timeout(PATIENCE, service.oneshot(request)).await?;
    assert_eq!(response?.status(), 503);
    assert_eq!(server.values("x-attempt"), [["1"], ["2"], ["3"]]);
    assert_eq!(server.values("authorization"), [["Basic 7"]; 3]);
    assert_eq!(server.key().len(), 36);
    let lines: Vec<_> = lock(&server.heads).iter().map(Vec::len).collect();
    assert_eq!(lines, [lines[0]; 3], "nor anything else");
    Ok(())
}
