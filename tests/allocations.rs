//! What our layers allocate beyond what the client below does: nothing, for a call that succeeds.
//!
//! Counted on one thread, which polls by itself: no runtime takes part, but for its timers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use abate::grpc::GrpcStatusLayer;
use abate::{
    AttemptTimeoutLayer, BreakerState, BufferedResponseLayer, CircuitBreakerLayer,
    ConcurrencyLimitLayer, DeadlineLayer, Error, ErrorKind, Policy, PolicyBuilder, RetryAfterLayer,
    RetryBudgetLayer, RetryLayer, Stack,
};
use allocation_counter::{measure, opt_out};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Empty, Full};
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, Service};

/// The first calls fill the pool of their thread.
const WARM_UP: usize = 3;

/// Reads its request and answers, without a box, at once or when it is polled for the second time.
#[derive(Debug, Clone)]
struct Bare {
    pending: bool,
    status: Arc<AtomicU16>,
}

impl Bare {
    fn new(pending: bool) -> Self {
        Self { pending, status: Arc::new(AtomicU16::new(200)) }
    }
}

impl<B: Body + Unpin> Service<Request<B>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BareFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> BareFuture<B> {
        // Relaxed: set by the thread that reads it.
        let status = self.status.load(Ordering::Relaxed);
        BareFuture { pending: self.pending, status, request: Some(request) }
    }
}

struct BareFuture<B> {
    pending: bool,
    status: u16,
    request: Option<Request<B>>,
}

impl<B> Unpin for BareFuture<B> {}

impl<B: Body + Unpin> Future for BareFuture<B> {
    type Output = Result<Response<Full<Bytes>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.pending) {
            return Poll::Pending;
        }
        if let Some(request) = self.request.take() {
            read(request.into_body());
        }
        let mut response = Response::new(Full::new(Bytes::from_static(b"ok")));
        if let Ok(status) = self.status.try_into() {
            *response.status_mut() = status;
        }
        Poll::Ready(Ok(response))
    }
}

/// Time for the layers, which stands still; no I/O.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().start_paused(true).build()
}

/// A request made at run time: none of its parts is static, and each has its own memory.
fn request<B>(method: Method, uri: String, body: B) -> http::Result<Request<B>> {
    let mut request = Request::builder().method(method).uri(exact(uri));
    for nth in 0..8 {
        let (name, value) = (format!("x-header-{nth}"), format!("value number {nth}"));
        request = request.header(name, exact(value));
    }
    request.body(body)
}

/// Without spare room, text becomes `Bytes` which allocate when they are first cloned.
fn exact(text: String) -> String {
    text.into_boxed_str().into_string()
}

fn get() -> http::Result<Request<Empty<Bytes>>> {
    request(Method::GET, format!("http://example.com/items?page={}", 7), Empty::new())
}

fn with_body(method: Method, length: usize) -> http::Result<Request<Full<Bytes>>> {
    request(method, format!("/items/{length}"), Full::new(Bytes::from(vec![7; length])))
}

fn put() -> http::Result<Request<Full<Bytes>>> {
    with_body(Method::PUT, 1024)
}

fn post() -> http::Result<Request<Full<Bytes>>> {
    with_body(Method::POST, 1024)
}

/// The allocations of one call, to the end of the response body, and what came of it.
fn allocated<S, B, R>(service: &mut S, request: Request<B>) -> (u64, Result<u16, S::Error>)
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body + Unpin,
{
    let mut outcome = None;
    let info = measure(|| {
        let mut cx = Context::from_waker(Waker::noop());
        while service.poll_ready(&mut cx).is_pending() {}
        let mut call = std::pin::pin!(service.call(request));
        let result = loop {
            if let Poll::Ready(result) = call.as_mut().poll(&mut cx) {
                break result;
            }
        };
        outcome = Some(result.map(|response| {
            let status = response.status().as_u16();
            read(response.into_body());
            status
        }));
    });
    (info.count_total, outcome.unwrap_or(Ok(0)))
}

fn read<R: Body + Unpin>(mut body: R) {
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut body).poll_frame(&mut cx) {}
}

/// Makes calls through `layer` and without it, after some to warm up, and compares.
#[track_caller]
fn assert_adds_nothing<L, B, R>(layer: &L, make: impl Fn() -> Request<B>)
where
    L: Layer<Bare>,
    L::Service: Service<Request<B>, Response = Response<R>, Error = Error>,
    B: Body<Data = Bytes> + Unpin,
    R: Body + Unpin,
{
    for pending in [false, true] {
        let mut bare = Bare::new(pending);
        let mut layered = layer.layer(bare.clone());
        for nth in 0..20 {
            let (without, with) = (allocated(&mut bare, make()), allocated(&mut layered, make()));
            assert!(matches!((without.1, with.1), (Ok(200), Ok(200))));
            if nth >= WARM_UP {
                let name = std::any::type_name::<L>();
                assert_eq!(with.0, without.0, "{name}, pending: {pending}, call {nth}");
            }
        }
    }
}

fn limited() -> PolicyBuilder {
    Policy::builder().with_concurrency(100)
}

#[test]
fn the_stack_allocates_nothing_for_a_call_that_succeeds() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    for policy in [Policy::default(), limited().build().unwrap()] {
        assert_adds_nothing(&Stack::new(policy.clone()), || get().unwrap());
        assert_adds_nothing(&Stack::new(policy.clone()), || put().unwrap());
        assert_adds_nothing(&Stack::new(policy), || post().unwrap());
    }
}

#[test]
fn no_layer_allocates_anything_for_a_call_that_succeeds() {
    fn each<B: Body<Data = Bytes> + Unpin>(make: impl Fn() -> Request<B>) {
        let policy = Policy::default();
        let long = Duration::from_secs(9);
        assert_adds_nothing(&RetryLayer::new(policy.clone()), &make);
        assert_adds_nothing(&RetryLayer::new(policy.clone()).without_budget(), &make);
        assert_adds_nothing(&RetryBudgetLayer::new(&policy), &make);
        assert_adds_nothing(&CircuitBreakerLayer::new(&policy), &make);
        assert_adds_nothing(&RetryAfterLayer::new(), &make);
        assert_adds_nothing(&GrpcStatusLayer::new(), &make);
        assert_adds_nothing(&ConcurrencyLimitLayer::from_policy(&policy), &make);
        assert_adds_nothing(&AttemptTimeoutLayer::new(long), &make);
        assert_adds_nothing(&DeadlineLayer::new(long), &make);
        assert_adds_nothing(&BufferedResponseLayer::default(), &make);
    }
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    each(|| get().unwrap());
    each(|| put().unwrap());
    each(|| post().unwrap());
    let limit = ConcurrencyLimitLayer::new(1).unwrap();
    assert_adds_nothing(&limit, || get().unwrap());
}

/// Four frames of a quarter of `length` each, in a body that does or does not know how long it is.
struct Streamed {
    frame: Bytes,
    left: u64,
    sized: bool,
}

fn streamed(length: usize, sized: bool) -> http::Result<Request<Streamed>> {
    let body =
        Streamed { frame: Bytes::from_static(&[7; 64 * 1024]).slice(..length / 4), left: 4, sized };
    request(Method::PUT, "/items".into(), body)
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.left.checked_sub(1).map(|left| {
            self.left = left;
            Ok(Frame::data(self.frame.clone()))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        match self.sized {
            true => SizeHint::with_exact(self.left * self.frame.len() as u64),
            false => SizeHint::new(),
        }
    }
}

#[test]
fn a_stream_costs_one_allocation_and_those_of_its_record() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    let counts = |attempts: u32, length: usize, sized: bool| {
        let mut client =
            RetryLayer::new(Policy::builder().with_attempts(attempts).build().unwrap())
                .layer(Bare::new(false));
        let call = || allocated(&mut client, streamed(length, sized).unwrap()).0;
        std::iter::repeat_with(call).take(6).last()
    };
    let ours =
        |length, sized| counts(3, length, sized).zip(counts(1, length, sized)).map(|(a, b)| a - b);
    assert_eq!(ours(4 * 1024, true), Some(2), "its length is known");
    assert_eq!(ours(64 * 1024, true), Some(2), "as much as is recorded");
    assert_eq!(ours(4 * 1024, false), Some(4), "1 + 1 KiB, and doubled twice");
    assert_eq!(ours(128 * 1024, true), Some(1), "too long, and its first frame was looked at");
    assert_eq!(ours(256 * 1024, false), Some(2), "too long, as the second frame shows");
}

/// Makes all these calls before any is polled, polls each while all are under way, then ends them.
fn allocated_together<S, B, R>(service: &mut S, requests: Vec<Request<B>>) -> u64
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body + Unpin,
{
    let mut calls = Vec::with_capacity(requests.len());
    let info = measure(|| {
        let mut cx = Context::from_waker(Waker::noop());
        for request in requests {
            assert!(service.poll_ready(&mut cx).is_ready());
            let call = service.call(request);
            opt_out(|| calls.push(Box::pin(call)));
        }
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut cx).is_pending());
        }
        for call in &mut calls {
            let answered = call.as_mut().poll(&mut cx);
            assert!(matches!(&answered, Poll::Ready(Ok(_))));
            if let Poll::Ready(Ok(response)) = answered {
                read(response.into_body());
            }
        }
        calls.clear();
    });
    info.count_total
}

#[test]
fn a_hundred_calls_under_way_at_once_allocate_nothing() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    let mut client = Stack::new(limited().build().unwrap()).layer(Bare::new(true));
    for round in 0..5 {
        let mut requests = Vec::new();
        requests.resize_with(100, || put().unwrap());
        let allocated = allocated_together(&mut client, requests);
        assert!(round == 0 || allocated == 0, "{allocated} in round {round}");
    }
}

#[test]
fn a_refusal_by_the_breaker_allocates_its_error_alone() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    let bare = Bare::new(false);
    let stack = Stack::new(Policy::default());
    let mut client = stack.layer(bare.clone());
    // Relaxed: read by this thread.
    bare.status.store(503, Ordering::Relaxed);
    while stack.breaker().state() != BreakerState::Open {
        assert!(allocated(&mut client, post().unwrap()).1.is_ok());
        runtime.block_on(tokio::time::advance(Duration::from_millis(100)));
    }
    for nth in 0..20 {
        let (allocations, result) = allocated(&mut client, get().unwrap());
        assert_eq!(result.unwrap_err().kind(), ErrorKind::BreakerOpen);
        assert!(nth < WARM_UP || allocations <= 1, "{allocations}");
    }
}

#[test]
fn a_refusal_by_a_full_limit_allocates_its_error_alone() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    let policy = limited().with_concurrency(1).with_concurrency_wait(Duration::ZERO);
    let mut client = Stack::new(policy.build().unwrap()).layer(Bare::new(true));
    let _holder = Box::pin(client.call(get().unwrap()));
    for nth in 0..20 {
        let (allocations, result) = allocated(&mut client, get().unwrap());
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LimitReached);
        assert!(nth < WARM_UP || allocations <= 1, "{allocations}");
    }
}

/// Comes in halves, pausing once.
struct Halves {
    left: Bytes,
    paused: bool,
}

impl Body for Halves {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.paused, true) {
            return Poll::Pending;
        }
        let half = self.left.len().div_ceil(2);
        let frame = Frame::data(self.left.split_to(half));
        Poll::Ready((half > 0).then_some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.len() as u64)
    }
}

#[test]
fn a_body_that_is_read_ahead_in_parts_allocates_the_room_for_the_whole() {
    let runtime = runtime().unwrap();
    let _entered = runtime.enter();
    let halves = tower::service_fn(async |_: Request<Empty<Bytes>>| {
        let left = Bytes::from_static(&[7; 1_000]);
        Ok::<_, Infallible>(Response::new(Halves { left, paused: false }))
    });
    let mut client = BufferedResponseLayer::default().layer(halves);
    for nth in 0..20 {
        let (allocations, result) = allocated(&mut client, get().unwrap());
        assert!(matches!(result, Ok(200)));
        // The timer that the pause takes is in its pool by then.
        assert!(nth < WARM_UP || allocations == 1, "{allocations}");
    }
}
