//! gRPC over real connections: tonic's channel, and a plain client of HTTP/2, below all layers.

mod real_grpc_server;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use abate::grpc::{GrpcStatus, GrpcStatusLayer};
use abate::{
    BreakerState, Error, ErrorKind, Fault, Hold, Idempotent, Policy, PolicyBuilder, ReplayBody,
    Report, Stack, StackService,
};
use anyhow::Context as _;
use bytes::Bytes;
use futures_util::stream;
use http::uri::PathAndQuery;
use http::{Method, Request};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Channel;
use tonic::{Code, IntoRequest, Status};
use tower::util::MapRequest;
use tower::{Layer, ServiceExt};

use crate::real_grpc_server::{Raw, Reply, data, fields, serve, trailers};

type Test = anyhow::Result<()>;

/// All that stands below tonic's client, by name.
type Line = StackService<GrpcStatus<MapRequest<Channel, Unwrap>>>;
/// tonic's channel takes tonic's own body alone.
type Unwrap = fn(Request<ReplayBody<Body>>) -> Request<Body>;

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const METHOD: PathAndQuery = PathAndQuery::from_static("/shop.Stock/Count");
const UNAVAILABLE: [(&str, &str); 3] =
    [("grpc-status", "14"), ("grpc-message", "closing%20down"), ("x-shard", "7")];

fn policy() -> PolicyBuilder {
    Policy::builder().with_grpc()
}

fn channel(server: SocketAddr) -> anyhow::Result<Channel> {
    Ok(Channel::from_shared(format!("http://{server}"))?.connect_lazy())
}

fn over(stack: &Stack, channel: Channel) -> tonic::client::Grpc<Line> {
    let unwrap: Unwrap = |request| request.map(Body::new);
    let attempt = GrpcStatusLayer::new().layer(MapRequest::new(channel, unwrap));
    tonic::client::Grpc::new(stack.layer(attempt))
}

fn client(server: SocketAddr) -> anyhow::Result<tonic::client::Grpc<Line>> {
    Ok(over(&Stack::new(policy().build()?.without_backoff()), channel(server)?))
}

fn repeatable<M>(message: M) -> tonic::Request<M> {
    let mut request = tonic::Request::new(message);
    request.extensions_mut().insert(Idempotent(true));
    request
}

async fn unary(
    client: &mut tonic::client::Grpc<Line>,
    request: impl IntoRequest<Bytes>,
) -> Result<tonic::Response<Bytes>, Status> {
    client.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let call = client.unary(request.into_request(), METHOD, Raw);
    timeout(PATIENCE, call).await.map_err(|_| Status::cancelled("it hangs"))?
}

fn message(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

// CL-04
#[tokio::test]
async fn a_call_through_tonic_is_tried_again_wherever_its_failure_is_written() -> Test {
    let (server, arrived) = serve(false, |n| match n {
        0 => Reply::of(&UNAVAILABLE, []),
        1 => Reply::of(&[], [trailers(&UNAVAILABLE)]),
        _ => Reply::ok(b"seven"),
    })
    .await?;
    let answer = unary(&mut client(server)?, repeatable(message("how many?"))).await?;
    assert_eq!(answer.get_ref(), "seven");
    assert_eq!(answer.extensions().get::<Report>().map(Report::attempts), Some(3));
    let whole = data(b"how many?").into_data().map_err(|_| anyhow::anyhow!("data"))?;
    assert_eq!(arrived.calls(), [&whole[..]; 3], "each attempt was whole");
    Ok(())
}

// CL-04
#[tokio::test]
async fn the_last_failure_reaches_the_caller_with_all_that_it_said() -> Test {
    for in_trailers in [false, true] {
        let (server, arrived) = serve(false, move |_| match in_trailers {
            true => Reply::of(&[], [trailers(&UNAVAILABLE)]),
            false => Reply::of(&UNAVAILABLE, []),
        })
        .await?;
        let mut client = client(server)?;
        let status = unary(&mut client, repeatable(message("how many?"))).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "closing down"));
        assert_eq!(status.metadata().get("x-shard").context("the metadata")?, "7");
        assert_eq!(arrived.calls().len(), 3);
        let status = unary(&mut client, message("how many?")).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(arrived.calls().len(), 4, "and a call that may not be repeated was not");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_pushes_back_is_called_again_when_it_said() -> Test {
    const TOLD: [(&str, &str); 2] = [("grpc-status", "8"), ("grpc-retry-pushback-ms", "150")];
    let (server, arrived) = serve(false, |n| match n {
        0 => Reply::of(&[], [trailers(&TOLD)]),
        _ => Reply::ok(b"seven"),
    })
    .await?;
    let start = Instant::now();
    let answer = unary(&mut client(server)?, message("reserve one")).await?;
    assert_eq!((answer.get_ref(), arrived.calls().len()), (&message("seven"), 2));
    assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
    Ok(())
}

#[tokio::test]
async fn the_messages_of_a_stream_come_up_one_by_one_as_they_are_sent() -> Test {
    let (reply, frames) = Reply::live(&[("x-shard", "7")]);
    let reply = std::sync::Mutex::new(Some(reply));
    let (server, _) = serve(false, move |_| {
        let reply = reply.lock().ok().and_then(|mut reply| reply.take());
        reply.unwrap_or_else(|| Reply::ok(b""))
    })
    .await?;
    let mut client = client(server)?;
    client.ready().await?;
    let request = tonic::Request::new(message("watch"));
    let call = client.server_streaming(request, METHOD, Raw);
    let answer =
        timeout(PATIENCE, call).await.context("the head, while the stream is silent")??;
    assert_eq!(answer.metadata().get("x-shard").context("the metadata")?, "7");
    let mut messages = answer.into_inner();
    for text in ["one", "two", "three"] {
        frames.send(data(text.as_bytes())).context("the reader is gone")?;
        let next = timeout(PATIENCE, messages.message()).await??;
        assert_eq!(next.as_deref(), Some(text.as_bytes()), "before the next one is sent");
    }
    frames.send(trailers(&UNAVAILABLE))?;
    let status = timeout(PATIENCE, messages.message()).await?.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "closing down"));
    Ok(())
}

#[tokio::test]
async fn both_sides_of_a_call_can_stream_in_turns() -> Test {
    let (reply, answers) = Reply::live(&[]);
    let reply = std::sync::Mutex::new(Some(reply));
    let (server, arrived) = serve(true, move |_| {
        let reply = reply.lock().ok().and_then(|mut reply| reply.take());
        reply.unwrap_or_else(|| Reply::ok(b""))
    })
    .await?;
    let mut client = client(server)?;
    client.ready().await?;
    let (questions, mut asked) = unbounded_channel::<Bytes>();
    let asked = stream::poll_fn(move |cx| asked.poll_recv(cx));
    let call = client.streaming(repeatable(asked), METHOD, Raw);
    let mut messages = timeout(PATIENCE, call).await??.into_inner();
    let mut sent = Vec::new();
    for text in ["one", "two", "three"] {
        questions.send(message(text))?;
        let frame = data(text.as_bytes()).into_data().map_err(|_| anyhow::anyhow!("data"))?;
        sent.extend_from_slice(&frame);
        let there = async {
            while arrived.calls().first() != Some(&sent) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, there).await.context("it is held back")?;
        answers.send(data(text.as_bytes()))?;
        assert_eq!(timeout(PATIENCE, messages.message()).await??.as_deref(), Some(text.as_bytes()));
    }
    drop(questions);
    answers.send(trailers(&[("grpc-status", "0")]))?;
    assert_eq!(timeout(PATIENCE, messages.message()).await??, None);
    Ok(())
}

#[tokio::test]
async fn a_stream_of_requests_is_sent_again_from_its_record() -> Test {
    let (server, arrived) = serve(false, |n| match n {
        0 => Reply::of(&UNAVAILABLE, []),
        _ => Reply::ok(b"six"),
    })
    .await?;
    let mut client = client(server)?;
    client.ready().await?;
    let parts = stream::iter(["one", "two", "three"].map(message));
    let call = client.client_streaming(repeatable(parts), METHOD, Raw);
    assert_eq!(timeout(PATIENCE, call).await??.get_ref(), "six");
    let calls = arrived.calls();
    assert_eq!((calls.len(), calls[0].len()), (2, 3 * 5 + "onetwothree".len()));
    assert_eq!(calls[0], calls[1]);
    Ok(())
}

#[tokio::test]
async fn errors_of_ours_and_of_the_channel_are_in_the_status() -> Test {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let nobody = listener.local_addr()?;
    drop(listener);
    let status = unary(&mut client(nobody)?, message("reserve one")).await.unwrap_err();
    let error = Error::find(&status).context("it is in the chain")?;
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Unsent));
    assert_eq!(error.attempts(), 3, "what was never sent may be sent again");

    let stack = Stack::new(policy().build()?);
    stack.breaker().force_open();
    let status = unary(&mut over(&stack, channel(nobody)?), message("?")).await.unwrap_err();
    assert_eq!(Error::find(&status).map(Error::kind), Some(ErrorKind::BreakerOpen));
    Ok(())
}

#[tokio::test]
async fn a_breaker_opens_on_what_tonic_is_told() -> Test {
    let (server, arrived) = serve(false, |_| Reply::of(&[], [trailers(&UNAVAILABLE)])).await?;
    let stack = Stack::new(policy().with_attempts(1).build()?);
    let client = Mutex::new(over(&stack, channel(server)?));
    let opens = async {
        while stack.breaker().state() != BreakerState::Open {
            let status = unary(&mut *client.lock().await, message("how many?")).await.unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
        }
    };
    timeout(PATIENCE, opens).await.context("it stays closed")?;
    let calls = arrived.calls().len();
    let refused = unary(&mut *client.lock().await, message("how many?")).await.unwrap_err();
    assert_eq!(Error::find(&refused).map(Error::kind), Some(ErrorKind::BreakerOpen));
    assert_eq!(arrived.calls().len(), calls);
    Ok(())
}

// BR-07
#[tokio::test]
async fn trailers_come_through_all_layers_over_http_2() -> Test {
    for looked_for in [false, true] {
        let (server, _) = serve(false, |n| match n {
            0 => Reply::of(&[], [data(b"")]).with_status(503),
            _ => Reply::ok(b""),
        })
        .await?;
        let stack = Stack::new(policy().with_concurrency(1).build()?.without_backoff());
        let stack = stack.with_hold(Hold::default());
        let client = HyperClient::builder(TokioExecutor::new()).http2_only(true).build_http();
        let mut request = Request::new(Full::from("five!"));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = format!("http://{server}/").parse()?;
        let call = async {
            Ok::<_, Error>(if looked_for {
                let client = GrpcStatusLayer::new().layer(client);
                stack.layer(client).oneshot(request).await?.map(|body| body.boxed())
            } else {
                stack.layer(client).oneshot(request).await?.map(|body| body.boxed())
            })
        };
        let response = timeout(PATIENCE, call).await??;
        assert_eq!(response.extensions().get::<Report>().map(Report::attempts), Some(2));
        let mut body = response.into_body();
        assert_eq!((stack.limit().in_use(), body.size_hint().exact()), (1, None));
        let first = body.frame().await.context("the data")??;
        assert_eq!(first.data_ref().map(|data| data.len()), Some(5));
        assert_eq!((stack.limit().in_use(), body.is_end_stream()), (1, false));
        let last = body.frame().await.context("the trailers")??;
        assert_eq!(last.trailers_ref(), Some(&fields(&[("grpc-status", "0")])));
        assert_eq!(stack.limit().in_use(), 0);
    }
    Ok(())
}
