//! What goes over the wire, and what becomes of it: a real client against a server that is written
//! out byte by byte.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use abate::{
    ErrorKind, Fault, Policy, ReplayBody, Report, ResponseBody, Stack, StackService, StopReason,
};
use abate_tests::rig::tried;
use abate_tests::wire::{ANY_PORT, OK, PATIENCE, Peer, Server, request};
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::{Layer, ServiceExt};

type Test = anyhow::Result<()>;

const PART_OF_A_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-le";
const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";

fn over<L, B>(layer: L) -> L::Service
where
    L: Layer<Client<HttpConnector, B>>,
    B: Body<Data = Bytes> + Send,
{
    layer.layer(Client::builder(TokioExecutor::new()).build_http())
}

fn stack(policy: Policy) -> StackService<Client<HttpConnector, ReplayBody<Full<Bytes>>>> {
    over(Stack::new(policy))
}

fn report(response: &Response<ResponseBody<Incoming>>) -> Report {
    response.extensions().get().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_refused_connection_is_retried_whatever_the_method() -> Test {
    // Bound, so that nobody else gets the port, and not listening.
    let closed = TcpSocket::new_v4()?;
    closed.bind(ANY_PORT)?;
    for method in [Method::GET, Method::POST] {
        let request = request(method, closed.local_addr()?, Full::from("data"));
        let error = stack(Policy::default()).oneshot(request).await.unwrap_err();
        let what = (error.kind(), error.fault(), error.attempts());
        assert_eq!(what, (ErrorKind::Client, Fault::Unsent, 3));
        let source = error.source().and_then(|source| source.downcast_ref());
        assert!(source.is_some_and(ClientError::is_connect), "{error:?}");
        let report = error.report().unwrap();
        assert_eq!(report.stop_reason(), Some(StopReason::Attempts));
        // At most 100 + 200 ms.
        assert!(report.elapsed() < Duration::from_millis(1_500), "{report}");
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_a_retry_for_a_get_and_an_error_for_a_post() -> Test {
    // What was sent and is left unread makes the close a reset.
    for (reads_all, answer) in [(true, ""), (true, PART_OF_A_HEAD), (false, PART_OF_A_HEAD)] {
        let script = move |mut peer: Peer| async move {
            match reads_all {
                _ if peer.number > 0 => return peer.serve(&[]).await,
                true => drop(peer.request().await?),
                false => drop(peer.stream.read_u8().await?),
            }
            peer.send(answer.as_bytes()).await
        };
        let server = Server::start(script)?;
        let got = stack(Policy::default()).oneshot(server.get()).await?;
        assert_eq!((tried(&report(&got)), report(&got).stop_reason()), (vec![0, 200], None));

        let server = Server::start(script)?;
        let post = request(Method::POST, server.address, Full::from("once"));
        let error = stack(Policy::default()).oneshot(post).await.unwrap_err();
        let what = (error.kind(), error.fault(), error.attempts(), server.connections());
        assert_eq!(what, (ErrorKind::Client, Fault::Ambiguous, 1, 1));
        assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::NotIdempotent));
    }
    Ok(())
}

#[tokio::test]
async fn the_first_call_of_a_fresh_process_outlasts_two_503s() -> Test {
    let server = Server::start(|peer| peer.serve(&[BUSY, BUSY]))?;
    let response = stack(Policy::default()).oneshot(server.get()).await?;
    assert_eq!(tried(&report(&response)), [503, 503, 200]);
    assert_eq!(server.connections(), 1, "an answer without a body leaves its connection in use");
    Ok(())
}

#[tokio::test]
async fn retry_after_is_waited_for_to_the_end() -> Test {
    const LATER: &[u8] = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(|peer| peer.serve(&[LATER]))?;
    let response = stack(Policy::default()).oneshot(server.get()).await?;
    let report = report(&response);
    assert_eq!(tried(&report), [503, 200]);
    // A second and up to a quarter of it.
    assert!(report.waited() >= Duration::from_secs(1), "{report}");
    assert!(report.elapsed() < Duration::from_secs(6), "{report}");
    Ok(())
}

// BR-04
#[tokio::test]
async fn a_second_attempt_carries_the_whole_body_whatever_became_of_the_first() -> Test {
    const SIZE: usize = 8 << 20;
    let sent: Vec<_> = (0..SIZE).map(|n| ((n * n) >> 16) as u8).collect();
    // What the server reads of the first attempt before it answers, and after that unless it closes.
    for (before, after) in [(SIZE, Some(0)), (0, Some(SIZE)), (0, None)] {
        let mut server = Server::start(move |mut peer| async move {
            if peer.number == 0 {
                peer.head().await?;
                peer.stream.read_exact(&mut vec![0; before]).await?;
                peer.send(BUSY).await?;
                let Some(after) = after else { return Ok(()) };
                peer.stream.read_exact(&mut vec![0; after]).await?;
            }
            let body = peer.request().await?;
            peer.note(body)?;
            peer.send(OK).await
        })?;
        let mut post = request(Method::POST, server.address, Full::from(sent.clone()));
        post.headers_mut().insert("idempotency-key", HeaderValue::from_static("8e03978e"));
        let response = timeout(PATIENCE, stack(Policy::default()).oneshot(post)).await??;
        assert_eq!((response.status(), report(&response).attempts()), (StatusCode::OK, 2));
        assert!(server.note().await? == sent, "{before}, {after:?}");
    }
    Ok(())
}

#[tokio::test]
async fn no_more_bodies_are_open_than_the_limit_allows() -> Test {
    static OPEN: AtomicUsize = AtomicUsize::new(0);
    let mut server = Server::start(|mut peer| async move {
        loop {
            peer.request().await?;
            // Relaxed: a number that orders nothing; so below.
            peer.note(vec![b'x'; OPEN.fetch_add(1, Ordering::Relaxed) + 1])?;
            peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await?;
            for _ in 0..4 {
                peer.send(b"xx").await?;
                sleep(Duration::from_millis(10)).await;
            }
            OPEN.fetch_sub(1, Ordering::Relaxed);
            peer.send(b"xx").await?;
        }
    })?;
    let policy = Policy::builder().with_concurrency(2).with_concurrency_wait(PATIENCE);
    let stack = Stack::new(policy.build()?);
    let (limit, service) = (stack.limit(), over(stack));
    let mut calls = JoinSet::new();
    for _ in 0..10 {
        let call = service.clone().oneshot(server.get());
        calls.spawn(async { anyhow::Ok(call.await?.into_body().collect().await?.to_bytes()) });
    }
    while let Some(body) = calls.join_next().await {
        assert_eq!(body??, "xxxxxxxxxx");
    }
    let open: Vec<_> = std::iter::from_fn(|| server.notes.try_recv().ok()).collect();
    assert_eq!((open.len(), open.iter().map(Vec::len).max()), (10, Some(2)), "{open:?}");
    assert_eq!(limit.in_use(), 0);
    Ok(())
}

#[tokio::test]
async fn an_attempt_at_a_hung_server_ends_in_time_with_its_connection() -> Test {
    const TIMEOUT: Duration = Duration::from_millis(100);
    let mut server = Server::start(|mut peer| async move {
        if peer.number == 2 {
            return peer.serve(&[]).await;
        }
        peer.request().await?;
        peer.stream.read_to_end(&mut Vec::new()).await?;
        peer.note(b"closed".to_vec())
    })?;
    let policy = Policy::builder().with_attempt_timeout(TIMEOUT).build()?;
    let response = stack(policy).oneshot(server.get()).await?;
    let report = report(&response);
    assert_eq!(tried(&report), [0, 0, 200]);
    assert!((TIMEOUT * 2..TIMEOUT * 10).contains(&(report.elapsed() - report.waited())));
    for _ in 0..2 {
        assert_eq!(server.note().await?, b"closed");
    }
    Ok(())
}
