//! HTTP/2: what a peer refuses, gives up or leaves behind, frame by frame (RFC 9113).

mod loopback;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use abate::{
    ErrorKind, Fault, Policy, ReplayBody, Report, RetryLayer, Stack, StackService, StopReason,
};
use bytes::Bytes;
use h2::Reason;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{Full, StreamBody};
use hyper::server::conn::http2;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use loopback::{Peer, Server, Test, report, tried};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tower::{Layer, ServiceExt, service_fn};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

type HttpClient = StackService<Client<HttpConnector, ReplayBody<Full<Bytes>>>>;

fn client() -> HttpClient {
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    Stack::new(Policy::default()).layer(client)
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Peer {
    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.stream.write_all(&frame).await
    }

    async fn frame(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).await?;
        Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
    }

    /// Both prefaces, with `settings` in ours.
    async fn greet(&mut self, settings: &[u8]) -> io::Result<()> {
        self.stream.read_exact(&mut [0; b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()]).await?;
        self.send(SETTINGS, 0, 0, settings).await
    }

    /// The stream of the next request that is complete.
    async fn request(&mut self) -> io::Result<u32> {
        loop {
            let frame = self.frame().await?;
            if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
                self.note(frame.stream)?;
                return Ok(frame.stream);
            }
        }
    }

    /// 200, in the first line of HPACK's static table that says so.
    async fn answer(&mut self, stream: u32) -> io::Result<()> {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &[0x88]).await
    }

    async fn reset(&mut self, stream: u32, reason: Reason) -> io::Result<()> {
        self.send(RST_STREAM, 0, stream, &u32::from(reason).to_be_bytes()).await
    }

    async fn go_away(&mut self, last: u32, reason: Reason) -> io::Result<()> {
        let payload = [last, reason.into()].map(u32::to_be_bytes).concat();
        self.send(GOAWAY, 0, 0, &payload).await
    }

    /// Answers whatever comes.
    async fn serve(&mut self) -> io::Result<()> {
        loop {
            let stream = self.request().await?;
            self.answer(stream).await?;
        }
    }

    /// No more of ours; what comes is read, so that what was sent is not lost in a reset.
    async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        self.stream.read_to_end(&mut Vec::new()).await.map(drop)
    }
}

// CN-04
#[tokio::test]
async fn what_a_goaway_leaves_behind_is_sent_again_on_a_new_connection_whatever_the_method() -> Test
{
    let mut server = Server::start(|mut peer| async move {
        peer.greet(&[]).await?;
        if peer.number > 0 {
            return peer.serve().await;
        }
        let (first, _second) = (peer.request().await?, peer.request().await?);
        peer.go_away(first, Reason::NO_ERROR).await?;
        peer.answer(first).await?;
        peer.close().await
    })
    .await?;
    let client = client();
    let first = tokio::spawn(client.clone().oneshot(server.request("http", Method::POST)));
    assert_eq!(server.note().await?, "1");
    let second = tokio::spawn(client.oneshot(server.request("http", Method::POST)));
    assert_eq!(server.note().await?, "3");

    let (first, second) = (first.await??, second.await??);
    assert_eq!(first.status(), StatusCode::OK);
    assert!(report(&first).is_none(), "one attempt was enough");
    assert_eq!(tried(report(&second)), [Err(Fault::Unsent), Ok(200)]);
    assert_eq!((server.notes(), server.connections()), (vec!["1".to_owned()], 2));
    Ok(())
}

// CN-04
#[tokio::test]
async fn streams_that_a_goaway_counts_and_that_die_may_have_been_carried_out() -> Test {
    let mut server = Server::start(|mut peer| async move {
        peer.greet(&[]).await?;
        if peer.number > 0 {
            return peer.serve().await;
        }
        let (_first, second) = (peer.request().await?, peer.request().await?);
        peer.go_away(second, Reason::NO_ERROR).await?;
        peer.close().await
    })
    .await?;
    let client = client();
    let get = tokio::spawn(client.clone().oneshot(server.request("http", Method::GET)));
    assert_eq!(server.note().await?, "1");
    let post = tokio::spawn(client.oneshot(server.request("http", Method::POST)));
    assert_eq!(server.note().await?, "3");

    assert_eq!(tried(report(&get.await??)), [Err(Fault::Ambiguous), Ok(200)]);
    let error = post.await?.unwrap_err();
    assert_eq!(tried(error.report()), [Err(Fault::Ambiguous)]);
    assert_eq!(error.report().and_then(Report::stop_reason), Some(StopReason::NotIdempotent));
    Ok(())
}

// CN-04
#[tokio::test]
async fn a_goaway_that_says_why_leaves_streams_untouched_all_the_same() -> Test {
    for reason in [Reason::ENHANCE_YOUR_CALM, Reason::INTERNAL_ERROR, Reason::PROTOCOL_ERROR] {
        let server = Server::start(move |mut peer| async move {
            peer.greet(&[]).await?;
            if peer.number > 0 {
                return peer.serve().await;
            }
            peer.request().await?;
            peer.go_away(0, reason).await?;
            peer.close().await
        })
        .await?;
        let got = client().oneshot(server.request("http", Method::POST)).await?;
        assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)], "{reason:?}");
        assert_eq!(server.connections(), 2);
    }
    Ok(())
}

/// What becomes of a request whose first stream is reset for `reason`.
async fn after_a_reset(
    reason: Reason,
    method: Method,
) -> anyhow::Result<(Vec<Result<u16, Fault>>, usize)> {
    let server = Server::start(move |mut peer| async move {
        peer.greet(&[]).await?;
        let stream = peer.request().await?;
        if peer.number == 0 {
            peer.reset(stream, reason).await?;
        } else {
            peer.answer(stream).await?;
        }
        peer.serve().await
    })
    .await?;
    let attempts = match client().oneshot(server.request("http", method)).await {
        Ok(response) => tried(report(&response)),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Client);
            tried(error.report())
        }
    };
    Ok((attempts, server.connections()))
}

#[tokio::test]
async fn a_stream_that_was_refused_is_sent_again_whatever_the_method() -> Test {
    for method in [Method::GET, Method::POST] {
        let got = after_a_reset(Reason::REFUSED_STREAM, method).await?;
        assert_eq!(got, (vec![Err(Fault::Unsent), Ok(200)], 1));
    }
    Ok(())
}

#[tokio::test]
async fn a_stream_that_was_reset_may_have_been_carried_out() -> Test {
    for reason in [
        Reason::NO_ERROR,
        Reason::PROTOCOL_ERROR,
        Reason::INTERNAL_ERROR,
        Reason::CANCEL,
        Reason::ENHANCE_YOUR_CALM,
        Reason::from(0xAB1E), // RFC 9113 section 7: an unknown code is no special one.
    ] {
        let got = after_a_reset(reason, Method::GET).await?;
        assert_eq!(got, (vec![Err(Fault::Ambiguous), Ok(200)], 1), "{reason:?}");
        let got = after_a_reset(reason, Method::POST).await?;
        assert_eq!(got, (vec![Err(Fault::Ambiguous)], 1), "{reason:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_peer_that_wants_another_protocol_is_asked_once() -> Test {
    for reason in [Reason::HTTP_1_1_REQUIRED, Reason::INADEQUATE_SECURITY] {
        let got = after_a_reset(reason, Method::GET).await?;
        assert_eq!(got, (vec![Err(Fault::Permanent)], 1), "{reason:?}");
    }
    Ok(())
}

// TO-10
#[tokio::test]
async fn a_call_that_is_dropped_cancels_its_stream_and_is_not_tried_again() -> Test {
    let mut server = Server::start(|mut peer| async move {
        peer.greet(&[]).await?;
        peer.request().await?;
        loop {
            let frame = peer.frame().await?;
            let code = <[u8; 4]>::try_from(frame.payload).map_or(u32::MAX, u32::from_be_bytes);
            match frame.kind {
                RST_STREAM => peer.note(format!("{} {:?}", frame.stream, Reason::from(code)))?,
                HEADERS => peer.note("another one")?,
                _ => {}
            }
        }
    })
    .await?;
    let client = client();
    let call = tokio::spawn(client.oneshot(server.request("http", Method::GET)));
    assert_eq!(server.note().await?, "1");
    call.abort();
    assert!(call.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(server.note().await?, "1 CANCEL");
    assert_eq!((server.notes(), server.connections()), (vec![], 1));
    Ok(())
}

/// A client that resets its own stream.
async fn resetting(
    server: std::net::SocketAddr,
    reason: Reason,
) -> Result<Response<Full<Bytes>>, h2::Error> {
    let stream = TcpStream::connect(server).await.map_err(|_| Reason::CONNECT_ERROR)?;
    let (client, connection) = h2::client::handshake(stream).await?;
    tokio::spawn(connection);
    let mut client = client.ready().await?;
    let request = Request::get("http://stock.internal/").body(()).unwrap_or_default();
    let (response, mut stream) = client.send_request(request, false)?;
    stream.send_reset(reason);
    Ok(response.await?.map(|_| Full::default()))
}

// TO-10
#[tokio::test]
async fn a_reset_of_our_own_is_no_failure_and_not_tried_again() -> Test {
    let server = Server::start(|mut peer| async move {
        peer.greet(&[]).await?;
        peer.serve().await
    })
    .await?;
    for (reason, fault) in
        [(Reason::CANCEL, Fault::Cancelled), (Reason::INTERNAL_ERROR, Fault::Permanent)]
    {
        let (address, calls) = (server.address, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&calls);
        let service = service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| {
            // Relaxed: a number; so below.
            counted.fetch_add(1, Ordering::Relaxed);
            resetting(address, reason)
        });
        let service = RetryLayer::new(Policy::default()).layer(service);
        let error = service.oneshot(server.request("http", Method::GET)).await.unwrap_err();
        assert_eq!((error.fault(), calls.load(Ordering::Relaxed)), (fault, 1), "{error:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_body_that_its_caller_breaks_is_not_held_against_the_peer() -> Test {
    let server = Server::start(|mut peer| async move {
        peer.greet(&[]).await?;
        peer.serve().await
    })
    .await?;
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let body = futures_util::stream::iter([Err(io::Error::other("gone"))]);
    let body = StreamBody::new(body);
    let put = server.request("http", Method::PUT).map(|_| body);
    let error = Stack::new(Policy::default()).layer(client).oneshot(put).await.unwrap_err();
    assert_eq!((error.fault(), error.attempts()), (Fault::Permanent, 1), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn a_connection_that_breaks_in_its_preface_was_handed_no_request() -> Test {
    let connections = Arc::new(AtomicUsize::new(0));
    let connector = service_fn(move |_: Uri| {
        // Relaxed: a number.
        let first = connections.fetch_add(1, Ordering::Relaxed) == 0;
        let wire = UnixStream::pair().map(|(ours, theirs)| {
            if first {
                drop(theirs);
            } else {
                let service = hyper::service::service_fn(|_| async {
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                });
                let server = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(theirs), service));
            }
            TokioIo::new(ours)
        });
        std::future::ready(wire)
    });
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build(connector);
    let client = Stack::new(Policy::default()).layer(client);
    let post = Request::post("http://stock.internal/").body(Full::<Bytes>::from("data"))?;
    let got = client.oneshot(post).await?;
    assert_eq!(tried(report(&got)), [Err(Fault::Unsent), Ok(200)]);
    Ok(())
}
