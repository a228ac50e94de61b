//! The clients that people use, with our layers, against a server on loopback.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

mod real_clients_hyper;
mod real_clients_middleware;
mod real_clients_redirects;
mod real_clients_reqwest;

use std::convert::Infallible;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use abate::{BreakerHandle, BreakerState, Policy, Report, TriedResult};
use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

type Test = anyhow::Result<()>;
type Answer = Response<Full<Bytes>>;

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it arrived.
#[derive(Debug, Clone)]
struct Seen {
    method: Method,
    path: String,
    version: Version,
    headers: HeaderMap,
    body: Bytes,
}

/// A server that answers the nth request that it sees, from 0, by a function; `None` is never.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    async fn start(
        answer: impl Fn(usize, &Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::listen(None, answer).await
    }

    /// With TLS, and these protocols in it; the second is its root certificate.
    async fn secure(protocols: &[&str]) -> anyhow::Result<(Self, String)> {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let key = own.signing_key.serialize_der().try_into().map_err(anyhow::Error::msg)?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)?;
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        let tls = TlsAcceptor::from(Arc::new(config));
        let answer = |nth, _: &Seen| Some(status(if nth == 0 { 503 } else { 200 }));
        Ok((Self::listen(Some(tls), answer).await?, own.cert.pem()))
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(usize, &Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = Self { address: listener.local_addr()?, seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&server.seen), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, seen, answer) = (tls.clone(), Arc::clone(&seen), Arc::clone(&answer));
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, seen, answer).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, seen, answer).await;
                            }
                        }
                    }
                });
            }
        });
        Ok(server)
    }

    /// Gives these answers, and then the last of them for ever.
    async fn answering<const N: usize>(statuses: [u16; N]) -> anyhow::Result<Self> {
        Self::start(move |nth, _| Some(status(statuses[nth.min(N - 1)]))).await
    }

    /// 503 with a hint of 300 ms, then 200.
    async fn hinting() -> anyhow::Result<Self> {
        Self::start(|nth, _| {
            if nth > 0 {
                return Some(status(200));
            }
            let mut busy = status(503);
            busy.headers_mut().insert("retry-after-ms", HeaderValue::from_static("300"));
            Some(busy)
        })
        .await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn authority(&self) -> String {
        self.address.to_string()
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Methods, paths and bodies, in short.
    fn log(&self) -> Vec<String> {
        let line =
            |it: &Seen| format!("{} {} {}", it.method, it.path, String::from_utf8_lossy(&it.body));
        self.seen().iter().map(line).map(|line| line.trim_end().to_owned()).collect()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<impl Fn(usize, &Seen) -> Option<Answer> + Send + Sync + 'static>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
        async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await else { return pending().await };
            let request = Seen {
                method: head.method,
                path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
                version: head.version,
                headers: head.headers,
                body: body.to_bytes(),
            };
            let nth = {
                let mut seen = seen.lock().unwrap();
                seen.push(request.clone());
                seen.len() - 1
            };
            match answer(nth, &request) {
                Some(answer) => Ok::<_, Infallible>(answer),
                None => pending().await,
            }
        }
    });
    // An error is a client that hung up.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn status(code: u16) -> Answer {
    let mut response = Response::new(Full::from("body"));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

fn to(code: u16, location: impl AsRef<str>) -> Answer {
    let mut response = status(code);
    let location = HeaderValue::from_str(location.as_ref()).unwrap();
    response.headers_mut().insert(http::header::LOCATION, location);
    response
}

/// All defaults, without waits.
fn quick() -> Policy {
    Policy::default().without_backoff()
}

/// One attempt.
fn single() -> Policy {
    Policy::builder().with_attempts(1).build().unwrap()
}

/// The statuses of the attempts, 0 for none, where a call was not over at once.
fn tried(extensions: &Extensions) -> Vec<u16> {
    let report = extensions.get::<Report>().map(Report::tried).unwrap_or_default();
    let code = |result| match result {
        TriedResult::Status(status) => status.as_u16(),
        _ => 0,
    };
    report.iter().map(|tried| code(tried.result())).collect()
}

/// Calls a dependency that fails for ever until the breaker refuses; by default that takes 2 s.
async fn assert_opens(breaker: &BreakerHandle, call: impl AsyncFn()) {
    let start = Instant::now();
    while breaker.state() == BreakerState::Closed {
        assert!(start.elapsed() < PATIENCE, "the breaker does not open");
        call().await;
    }
    assert_eq!(breaker.state(), BreakerState::Open);
}
