//! The layers have the shape that users need: types are inferred, can be named, boxed, shared and
//! spawned, and fit between everyone else's layers. Over a real client and a real server.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::future::{Ready, ready};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use abate::{
    AttemptTimeoutLayer, BufferedResponseLayer, CircuitBreakerLayer, ConcurrencyLimitLayer,
    DeadlineLayer, ErrorKind, Policy, PolicyError, ReplayBody, ResponseBody, RetryAfterLayer,
    RetryLayer, Stack, StackService,
};
use axum::body::Body as AxumBody;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::buffer::BufferLayer;
use tower::limit::ConcurrencyLimitLayer as TowerLimit;
use tower::load_shed::{LoadShed, LoadShedLayer};
use tower::retry::RetryLayer as TowerRetry;
use tower::timeout::TimeoutLayer;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};
use tower_http::set_header::SetRequestHeaderLayer;
use tower_http::trace::TraceLayer;

type Test = Result<(), BoxError>;
type Answer = Response<ResponseBody<Incoming>>;
/// How an application names what it holds.
type Dependency = StackService<Client<HttpConnector, ReplayBody<AxumBody>>>;
type Boxed = BoxCloneSyncService<Request<AxumBody>, Answer, abate::Error>;

const LONG: Duration = Duration::from_secs(20);
const MARK: HeaderName = HeaderName::from_static("x-mark");

/// A client whose body is left to inference.
macro_rules! client {
    () => {
        Client::builder(TokioExecutor::new()).build_http()
    };
}

/// Calls through a layer in both ways, bare and boxed, with a body and what comes back of it.
macro_rules! carries {
    ($server:expr, $layer:expr, $body:expr, $back:expr) => {{
        let mut service = fits(ServiceBuilder::new().layer($layer).service(client!()));
        let response = service.ready().await?.call($server.put($body)).await?;
        assert_eq!(read(response).await?, $back);
        let service = ServiceBuilder::new().layer($layer).service(client!());
        let service = BoxCloneSyncService::new(service);
        assert_eq!(read(service.oneshot($server.put($body)).await?).await?, $back);
    }};
}

/// Tests that layers, each alone, carry every kind of body that people use.
macro_rules! carry_every_body {
    ($($test:ident: $layer:expr;)+) => {$(
        #[tokio::test]
        async fn $test() -> Test {
            let server = Server::start(0).await?;
            carries!(server, $layer, Empty::<Bytes>::new(), "200");
            carries!(server, $layer, hello(), "200 hello");
            carries!(server, $layer, String::from("hello"), "200 hello");
            carries!(server, $layer, AxumBody::from("hello"), "200 hello");
            carries!(server, $layer, BoxBody::new(hello()), "200 hello");
            carries!(server, $layer, UnsyncBoxBody::new(hello()), "200 hello");
            carries!(server, $layer, parts(["hel", "lo"]), "200 hello");
            carries!(server, $layer, server.incoming().await?, "200 hello");
            Ok(())
        }
    )+};
}

carry_every_body! {
    a_retry_alone_carries_every_body: RetryLayer::new(policy());
    a_breaker_alone_carries_every_body: CircuitBreakerLayer::new(policy());
    a_retry_after_alone_carries_every_body: RetryAfterLayer::new();
    a_concurrency_limit_alone_carries_every_body: ConcurrencyLimitLayer::new(1)?;
    an_attempt_timeout_alone_carries_every_body: AttemptTimeoutLayer::new(LONG);
    a_deadline_alone_carries_every_body: DeadlineLayer::new(LONG);
    a_buffered_response_alone_carries_every_body: BufferedResponseLayer::default();
    a_stack_carries_every_body: Stack::new(policy());
}

/// Calls a dependency, which fails so many times before, through a builder's layers.
macro_rules! passes {
    ($failures:expr, $builder:expr) => {{
        let server = Server::start($failures).await?;
        let response = $builder.service(client!()).oneshot(server.put(hello())).await?;
        assert_eq!(read(response).await?, "200 hello");
        assert_eq!(server.requests().len(), $failures + 1);
        server.requests()
    }};
}

/// The same with a foreign layer above, below, and on both sides.
macro_rules! passes_with {
    ($failures:expr, $layer:expr, $foreign:expr) => {{
        passes!($failures, ServiceBuilder::new().layer($foreign).layer($layer));
        passes!($failures, ServiceBuilder::new().layer($layer).layer($foreign));
        passes!($failures, ServiceBuilder::new().layer($foreign).layer($layer).layer($foreign));
    }};
}

/// A server that answers with 503 so many times, then with what it is sent.
#[derive(Clone)]
struct Server {
    uri: String,
    failures: usize,
    requests: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Server {
    async fn start(failures: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let uri = format!("http://{}/", listener.local_addr()?);
        let server = Self { uri, failures, requests: Arc::default() };
        let shared = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = shared.clone();
                let answer =
                    hyper::service::service_fn(move |request| server.clone().answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        Ok(server)
    }

    async fn answer(self, request: Request<Incoming>) -> hyper::Result<Response<Full<Bytes>>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(head.headers);
        let mut response = Response::new(Full::new(body));
        if requests.len() <= self.failures {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        Ok(response)
    }

    /// A request that may be repeated.
    fn put<B>(&self, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::PUT;
        *request.uri_mut() = self.uri.parse().unwrap_or_default();
        request
    }

    /// A body that comes from elsewhere, as a proxy has it.
    async fn incoming(&self) -> Result<Incoming, BoxError> {
        Ok(client!().request(self.put(hello())).await?.into_body())
    }

    fn requests(&self) -> Vec<HeaderMap> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn fits<S: Clone + Send + Sync + 'static>(service: S) -> S {
    service
}

fn hello() -> Full<Bytes> {
    Full::from("hello")
}

/// A body that streams.
fn parts<const N: usize>(
    parts: [&'static str; N],
) -> impl Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static {
    StreamBody::new(stream::iter(parts.map(|part| Ok(Frame::data(Bytes::from(part))))))
}

/// The status and the text of a response.
async fn read<B>(response: Response<B>) -> Result<String, BoxError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(Into::into)?.to_bytes();
    Ok(format!("{status} {}", String::from_utf8_lossy(&body)).trim_end().to_owned())
}

/// All defaults and waits too short to notice.
fn policy() -> Policy {
    Policy::builder().with_base(Duration::from_millis(1)).build().unwrap_or_default()
}

fn dependency() -> Dependency {
    ServiceBuilder::new().layer(Stack::new(policy())).service(client!())
}

#[tokio::test]
async fn towers_timeout_goes_above_and_below() -> Test {
    passes_with!(2, RetryLayer::new(policy()), TimeoutLayer::new(LONG));
    passes_with!(0, CircuitBreakerLayer::new(policy()), TimeoutLayer::new(LONG));
    passes_with!(2, Stack::new(policy()), TimeoutLayer::new(LONG));
    Ok(())
}

#[tokio::test]
async fn tower_https_trace_goes_above_and_below() -> Test {
    passes_with!(2, RetryLayer::new(policy()), TraceLayer::new_for_http());
    passes_with!(0, CircuitBreakerLayer::new(policy()), TraceLayer::new_for_http());
    passes_with!(2, Stack::new(policy()), TraceLayer::new_for_http());
    Ok(())
}

#[tokio::test]
async fn towers_buffer_shedding_and_limit_go_above_and_below() -> Test {
    passes_with!(2, Stack::new(policy()), BufferLayer::new(4));
    passes_with!(2, Stack::new(policy()), LoadShedLayer::new());
    passes_with!(2, Stack::new(policy()), TowerLimit::new(1));
    passes_with!(2, RetryLayer::new(policy()), BufferLayer::new(4));
    Ok(())
}

/// Repeats once what failed, where a request can be cloned.
#[derive(Clone)]
struct Once<C>(bool, C);

impl<C, B, R, E> tower::retry::Policy<Request<B>, Response<R>, E> for Once<C>
where
    C: Fn(&Request<B>) -> Option<Request<B>>,
{
    type Future = Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<B>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Ready<()>> {
        let failed = !result.as_ref().is_ok_and(|response| response.status().is_success());
        (failed && std::mem::take(&mut self.0)).then(|| ready(()))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        (self.1)(request)
    }
}

#[tokio::test]
async fn towers_retry_goes_above_and_below() -> Test {
    let above =
        || TowerRetry::new(Once(true, |request: &Request<Full<Bytes>>| Some(request.clone())));
    let below = || TowerRetry::new(Once(true, |_: &Request<_>| None));
    passes!(2, ServiceBuilder::new().layer(above()).layer(Stack::new(policy())));
    passes!(2, ServiceBuilder::new().layer(Stack::new(policy())).layer(below()));
    // Three attempts of the first call, one of its repeat.
    passes!(3, ServiceBuilder::new().layer(above()).layer(RetryLayer::new(policy())));
    Ok(())
}

fn mark<B>(mut request: Request<B>) -> Request<B> {
    request.headers_mut().append(MARK, HeaderValue::from_static("by hand"));
    request
}

#[tokio::test]
async fn a_header_is_there_once_on_each_attempt_wherever_it_is_set() -> Test {
    let set = || SetRequestHeaderLayer::appending(MARK, HeaderValue::from_static("by a layer"));
    let retry = || RetryLayer::new(policy());
    let seen = [
        passes!(2, ServiceBuilder::new().layer(set()).layer(retry())),
        passes!(2, ServiceBuilder::new().layer(retry()).layer(set())),
        passes!(2, ServiceBuilder::new().layer(Stack::new(policy())).layer(set())),
        passes!(2, ServiceBuilder::new().map_request(mark).layer(retry())),
        passes!(2, ServiceBuilder::new().layer(retry()).map_request(mark)),
        passes!(2, ServiceBuilder::new().layer(Stack::new(policy())).map_request(mark)),
    ];
    for headers in seen.into_iter().flatten() {
        assert_eq!(headers.get_all(MARK).iter().count(), 1, "{headers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn functions_are_layers_above_and_below() -> Test {
    passes!(2, ServiceBuilder::new().layer_fn(LoadShed::new).layer(Stack::new(policy())));
    passes!(2, ServiceBuilder::new().layer(Stack::new(policy())).layer_fn(LoadShed::new));
    passes!(2, ServiceBuilder::new().layer(RetryLayer::new(policy())).map_response(|it| it));
    passes!(2, ServiceBuilder::new().map_err(BoxError::from).layer(Stack::new(policy())));
    Ok(())
}

/// Any client at all, called by a clone.
async fn status<S, B>(service: &S, request: Request<AxumBody>) -> Result<StatusCode, S::Error>
where
    S: Service<Request<AxumBody>, Response = Response<B>> + Clone,
{
    Ok(service.clone().oneshot(request).await?.status())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_can_be_spawned_from_clones_that_share_the_stack() -> Test {
    let server = Server::start(0).await?;
    let (typed, boxed) = (fits(dependency()), fits(Boxed::new(dependency())));
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let (typed, boxed) = (typed.clone(), boxed.clone());
        let [one, two] = [(); 2].map(|()| server.put(AxumBody::from("hello")));
        calls.spawn(
            async move { anyhow::Ok((typed.oneshot(one).await?, status(&boxed, two).await?)) },
        );
    }
    while let Some(answers) = calls.join_next().await {
        let (answer, status): (Answer, _) = answers??;
        assert_eq!((read(answer).await?.as_str(), status), ("200 hello", StatusCode::OK));
    }
    Ok(())
}

async fn relay<S>(
    State((mut service, server)): State<(S, Server)>,
) -> Result<Response<AxumBody>, StatusCode>
where
    S: Service<Request<AxumBody>, Response = Answer, Error = abate::Error>,
{
    let request = server.put(AxumBody::from("hello"));
    let service = service.ready().await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    let answer = service.call(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(answer.map(AxumBody::new))
}

#[tokio::test]
async fn an_axum_handler_calls_a_dependency_out_of_its_state() -> Test {
    let (typed, boxed) = (Server::start(2).await?, Server::start(2).await?);
    let app = axum::Router::new()
        .route("/typed", get(relay::<Dependency>).with_state((dependency(), typed)))
        .route("/boxed", get(relay::<Boxed>).with_state((Boxed::new(dependency()), boxed)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, app).into_future());
    for path in ["typed", "boxed"] {
        let request = Request::get(format!("http://{address}/{path}")).body(hello())?;
        assert_eq!(read(client!().request(request).await?).await?, "200 hello");
    }
    Ok(())
}

#[tokio::test]
async fn every_error_goes_through_a_question_mark() {
    fn wrong() -> Result<Policy, PolicyError> {
        Policy::builder().with_attempts(0).build()
    }
    async fn anyhow(request: Request<AxumBody>) -> anyhow::Result<()> {
        dependency().ready().await?.call(request).await?;
        wrong()?;
        Ok(())
    }
    async fn boxed(request: Request<AxumBody>) -> Result<(), Box<dyn StdError + Send + Sync>> {
        dependency().oneshot(request).await?;
        wrong()?;
        Ok(())
    }
    let nowhere = || Request::new(AxumBody::empty());
    assert!(anyhow(nowhere()).await.unwrap_err().is::<abate::Error>());
    assert!(boxed(nowhere()).await.unwrap_err().is::<abate::Error>());
}

#[tokio::test]
async fn a_service_below_may_fail_with_whatever_can_be_boxed() {
    macro_rules! fails_with {
        ($error:expr) => {{
            let below =
                |_: Request<ReplayBody<AxumBody>>| ready(Err::<Response<String>, _>($error));
            let service = ServiceBuilder::new().layer(Stack::new(policy())).service_fn(below);
            let error = service.oneshot(Request::new(AxumBody::empty())).await.unwrap_err();
            assert_eq!((error.kind(), error.attempts()), (ErrorKind::Client, 3));
            error.source().map(ToString::to_string)
        }};
    }
    let gone = || io::Error::other("gone");
    assert_eq!(fails_with!(gone()).as_deref(), Some("gone"));
    assert_eq!(fails_with!(String::from("gone")).as_deref(), Some("gone"));
    assert_eq!(fails_with!("gone").as_deref(), Some("gone"));
    assert_eq!(fails_with!(BoxError::from(gone())).as_deref(), Some("gone"));
    assert_eq!(fails_with!(anyhow::anyhow!("gone")).as_deref(), Some("gone"));
    let never = |_: Request<_>| ready(Ok::<_, Infallible>(Response::new(String::from("here"))));
    let service = ServiceBuilder::new().layer(Stack::new(policy())).service_fn(never);
    assert!(service.oneshot(Request::new(AxumBody::empty())).await.is_ok());
}
