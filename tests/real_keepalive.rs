//! Connections that end while a request is under way, over HTTP/1.1.

mod loopback;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use abate::{
    ErrorKind, Fault, Policy, ReplayBody, Report, RetryLayer, Stack, StackService, StopReason,
    fault,
};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use loopback::{Peer, Server, Test, report, tried};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{self, UnboundedSender};
use tower::{Layer, ServiceExt, service_fn};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

type HttpClient = StackService<Client<HttpConnector, ReplayBody<Full<Bytes>>>>;

fn client() -> HttpClient {
    let client = Client::builder(TokioExecutor::new()).build_http();
    Stack::new(Policy::default()).layer(client)
}

/// Reads a request to its end; tells its method.
async fn request(stream: &mut (impl AsyncReadExt + Unpin)) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(stream.read_u8().await?.into());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(Ok(0), |length| length.parse().map_err(io::Error::other))?;
    stream.read_exact(&mut vec![0; length]).await?;
    Ok(head.split(' ').next().unwrap_or_default().to_owned())
}

/// Answers one request, and closes when the next one arrives: having read it, which makes that a
/// FIN, or not, which makes it a reset. Later connections do as they should.
async fn stale(mut peer: Peer, reads: bool) -> io::Result<()> {
    for served in 0.. {
        if served == 1 && peer.number == 0 && !reads {
            peer.stream.read_u8().await?;
            return peer.note("cut off");
        }
        let method = request(&mut peer.stream).await?;
        peer.note(method)?;
        if served == 1 && peer.number == 0 {
            return Ok(());
        }
        peer.stream.write_all(OK).await?;
    }
    Ok(())
}

// CN-01
#[tokio::test]
async fn a_request_on_an_idle_connection_that_is_just_closed_is_sent_again_where_that_is_harmless()
-> Test {
    let cases =
        [(Method::GET, false), (Method::PUT, false), (Method::POST, true), (Method::POST, false)];
    for (reads, (method, key)) in
        [true, false].into_iter().flat_map(|r| cases.clone().map(|c| (r, c)))
    {
        let mut server = Server::start(move |peer| stale(peer, reads)).await?;
        let client = client();
        let warm = client.clone().oneshot(server.request("http", Method::GET)).await?;
        assert_eq!((warm.status(), server.note().await?.as_str()), (StatusCode::OK, "GET"));

        let mut request = server.request("http", method.clone());
        if key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static("8e03978e"));
        }
        let got = client.oneshot(request).await;
        let seen = if reads { method.as_str() } else { "cut off" };
        if method == Method::POST && !key {
            let error = got.unwrap_err();
            assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Ambiguous));
            assert_eq!(tried(error.report()), [Err(Fault::Ambiguous)]);
            let reason = error.report().and_then(Report::stop_reason);
            assert_eq!(reason, Some(StopReason::NotIdempotent));
            assert_eq!((server.notes(), server.connections()), (vec![seen.to_owned()], 1));
        } else {
            let got = got?;
            let report = report(&got);
            assert_eq!(tried(report), [Err(Fault::Ambiguous), Ok(200)]);
            assert!(report.is_some_and(|report| report.waited() <= Duration::from_millis(500)));
            assert_eq!(server.notes(), [seen, method.as_str()]);
            assert_eq!(server.connections(), 2, "the repeat has a connection of its own");
        }
    }
    Ok(())
}

// CN-02
#[tokio::test]
async fn a_post_that_was_read_and_not_answered_may_have_been_carried_out() -> Test {
    let mut server = Server::start(|mut peer| async move {
        let method = request(&mut peer.stream).await?;
        peer.note(method) // Carried out; and closed, without a byte.
    })
    .await?;
    let error = client().oneshot(server.request("http", Method::POST)).await.unwrap_err();
    assert_eq!(tried(error.report()), [Err(Fault::Ambiguous)]);
    assert_eq!((server.notes(), server.connections()), (vec!["POST".to_owned()], 1));
    Ok(())
}

/// A connection to a server that has closed it already, or else answers; and all that is written to it.
async fn over_a_new_connection(
    request: Request<ReplayBody<Full<Bytes>>>,
    closed: bool,
    written: UnboundedSender<Vec<u8>>,
) -> hyper::Result<Response<Incoming>> {
    let (ours, mut theirs) = tokio::io::duplex(4_096);
    let (mut sender, connection) = http1::handshake(TokioIo::new(ours)).await?;
    // Queued before the connection gets to run.
    let response = sender.send_request(request);
    tokio::spawn(async move {
        let mut all = Vec::new();
        if closed {
            theirs.shutdown().await?;
            theirs.read_to_end(&mut all).await?;
        } else {
            while !all.ends_with(b"\r\n\r\ndata") {
                theirs.read_buf(&mut all).await?;
            }
            theirs.write_all(OK).await?;
        }
        written.send(all).map_err(io::Error::other)
    });
    tokio::task::yield_now().await;
    tokio::spawn(connection);
    response.await
}

// CN-02
#[tokio::test(start_paused = true)]
async fn a_post_that_was_taken_back_before_a_byte_was_written_is_sent_again() -> Test {
    let (sender, mut written) = mpsc::unbounded_channel();
    let first = Arc::new(AtomicBool::new(true));
    let service = service_fn(move |request| {
        // Relaxed: one thread.
        over_a_new_connection(request, first.swap(false, Ordering::Relaxed), sender.clone())
    });
    let post = Request::post("http://stock.internal/").body(Full::from("data"))?;
    let got = RetryLayer::new(Policy::default()).layer(service).oneshot(post).await?;
    assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)]);
    assert_eq!(written.recv().await.map(|all| all.len()), Some(0));
    assert!(written.recv().await.is_some_and(|all| all.starts_with(b"POST ")));
    Ok(())
}

// As `SendRequest::ready` tells it.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_closed_before_it_is_handed_a_request_sent_none() -> Test {
    let (ours, theirs) = tokio::io::duplex(4_096);
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(ours)).await?;
    drop(theirs);
    let _ = connection.await; // However it ends.
    let error = sender.ready().await.unwrap_err();
    assert_eq!(fault::of(&error), Fault::Unsent, "{error:?}");
    Ok(())
}
