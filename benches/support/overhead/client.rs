use std::fmt;
use std::future::Future;
use std::hint::black_box;
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use abate::Attempt;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use tower::Service;

use super::scenario::Path;

static KEEP: AtomicBool = AtomicBool::new(false);

/// From now on no request is freed: where instructions are counted, those of the allocator would
/// depend on how the heap lies by chance.
pub(super) fn keep_requests() {
    // Relaxed: read on the same thread.
    KEEP.store(true, Ordering::Relaxed);
}

pub(super) type Call = Request<Full<Bytes>>;
pub(super) type Answer = Response<Full<Bytes>>;

/// Answers by itself, without a box; a copy costs nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Client {
    Ready,
    Pending,
    Fails,
    FailsEverySecond,
}

/// Never made by the client: it only has to be there for peers that pass a client's error on.
#[derive(Debug, Clone)]
pub(super) struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Failed {}

impl<B> Service<Request<B>> for Client {
    type Response = Answer;
    type Error = Failed;
    type Future = ClientFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> ClientFuture {
        static FAIL_NEXT: AtomicBool = AtomicBool::new(true);
        black_box(&request);
        // Relaxed: set before the first call, on the same thread.
        if KEEP.load(Ordering::Relaxed) {
            mem::forget(request);
        }
        let fails = match self {
            Self::Ready | Self::Pending => false,
            Self::Fails => true,
            // Relaxed: on one thread.
            Self::FailsEverySecond => FAIL_NEXT.fetch_xor(true, Ordering::Relaxed),
        };
        ClientFuture { pending: matches!(self, Self::Pending), fails }
    }
}

pub(super) struct ClientFuture {
    pending: bool,
    fails: bool,
}

impl Future for ClientFuture {
    type Output = Result<Answer, Failed>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if mem::take(&mut self.pending) {
            return Poll::Pending;
        }
        let mut answer = Response::new(Full::new(Bytes::from_static(b"ok")));
        if self.fails {
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        Poll::Ready(Ok(answer))
    }
}

pub(super) fn request(path: Path) -> Call {
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::from_static("http://example.com/items/7");
    match path {
        Path::Unrepeatable => {
            *request.method_mut() = Method::POST;
            *request.body_mut() = Full::new(Bytes::from_static(b"{\"item\":7}"));
        }
        Path::RepeatRefused => Attempt::mark_repeat(request.extensions_mut()),
        _ => {}
    }
    if path.has_headers() {
        for nth in 0..8 {
            let name = HeaderName::from_bytes(format!("x-header-{nth}").as_bytes());
            let value = HeaderValue::from_maybe_shared(Bytes::from(format!("value-number-{nth}")));
            if let (Ok(name), Ok(value)) = (name, value) {
                request.headers_mut().insert(name, value);
            }
        }
    }
    request
}
