//! What becomes of request bodies over the wire: real clients against servers that are written out
//! byte by byte, or frame by frame.

mod real_bodies_http1;
mod real_bodies_http2;
mod real_bodies_redirects;
mod real_bodies_server;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use abate::{Jitter, Policy, PolicyBuilder, ReplayBody, Report, ResponseBody, Stack, StackService};
use abate::{StopReason, TriedResult};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tower::{Layer, ServiceExt};

type Test = anyhow::Result<()>;

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hundred frames of a hundred bytes, no two of them the same.
const FRAMES: usize = 100;
const FRAME: usize = 100;

fn frame(nth: usize) -> Bytes {
    (0..FRAME).map(|at| b'!' + ((nth * 7 + at) % 90) as u8).collect()
}

fn whole() -> Vec<u8> {
    (0..FRAMES).flat_map(frame).collect()
}

/// The whole body, frame by frame, as fast as it is read.
fn streamed() -> impl Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static {
    StreamBody::new(stream::iter((0..FRAMES).map(|nth| Ok(Frame::data(frame(nth))))))
}

type Parts = mpsc::UnboundedSender<io::Result<Frame<Bytes>>>;

/// A body of what is sent to it.
fn fed() -> (Parts, impl Body<Data = Bytes, Error = io::Error> + Send + Unpin + 'static) {
    let (parts, mut fed) = mpsc::unbounded_channel();
    (parts, StreamBody::new(stream::poll_fn(move |cx| fed.poll_recv(cx))))
}

fn feed(parts: &Parts, frames: std::ops::Range<usize>) -> Test {
    for nth in frames {
        parts.send(Ok(Frame::data(frame(nth))))?;
    }
    Ok(())
}

/// A body that knows its length.
struct Sized<B> {
    body: B,
    left: u64,
}

fn sized<B>(body: B) -> Sized<B> {
    Sized { body, left: (FRAMES * FRAME) as u64 }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Sized<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.left -= frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

fn trailers() -> HeaderMap {
    [(http::HeaderName::from_static("x-sum"), HeaderValue::from_static("10000"))]
        .into_iter()
        .collect()
}

fn request<B>(method: Method, address: SocketAddr, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = format!("http://{address}/").parse().unwrap_or_default();
    request
}

fn put<B>(address: SocketAddr, body: B) -> Request<B> {
    request(Method::PUT, address, body)
}

/// A first wait of exactly 400 ms, so that a machine which stalls does not decide whether a body is
/// back in time, and of twice as much before each next.
fn steady() -> PolicyBuilder {
    Policy::builder().with_base(Duration::from_millis(400)).with_jitter(Jitter::None)
}

#[derive(Clone, Copy)]
enum Protocol {
    Http1,
    Http2,
}

fn client<B>(protocol: Protocol) -> Client<HttpConnector, B>
where
    B: Body<Data = Bytes> + Send,
{
    let two = matches!(protocol, Protocol::Http2);
    Client::builder(TokioExecutor::new()).http2_only(two).build_http()
}

fn stack<B>(
    protocol: Protocol,
    policy: PolicyBuilder,
) -> anyhow::Result<StackService<Client<HttpConnector, ReplayBody<B>>>>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Send,
{
    Ok(Stack::new(policy.build()?).layer(client(protocol)))
}

/// Calls through the stack, and waits for the answer but not for ever.
async fn call<B>(
    protocol: Protocol,
    policy: PolicyBuilder,
    request: Request<B>,
) -> anyhow::Result<Response<ResponseBody<Incoming>>>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<abate::BoxError> + Send,
{
    Ok(timeout(PATIENCE, stack(protocol, policy)?.oneshot(request)).await??)
}

/// What the attempts came to, a status each and 0 for none; and why there were no more.
fn told<B>(response: &Response<B>) -> (Vec<u16>, Option<StopReason>) {
    let report = response.extensions().get::<Report>().cloned().unwrap_or_default();
    let code = |result| match result {
        TriedResult::Status(status) => http::StatusCode::as_u16(&status),
        _ => 0,
    };
    (report.tried().iter().map(|tried| code(tried.result())).collect(), report.stop_reason())
}
