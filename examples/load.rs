//! The load: evenly spaced calls, started on time whether or not earlier ones have ended.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tower::{BoxError, Service, ServiceExt};

use crate::tally::{Plan, Tally};
use crate::{Origin, progress};

/// The request of every call.
pub type Get = Request<Empty<Bytes>>;

/// How one call went.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// From the moment it was due to the end of its body, or to its error.
    pub latency: Duration,
    /// A 200 whose body was read to its end.
    pub success: bool,
}

/// Counts each request that is handed to the HTTP client, for every contestant in the same way.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    tally: Arc<Tally>,
}

impl<S, R> Service<R> for Counted<S>
where
    S: Service<R>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.tally.attempt();
        self.inner.call(request)
    }
}

/// hyper-util's client with its attempts counted.
pub type HttpClient<B> = Counted<legacy::Client<HttpConnector, B>>;

/// The same load on several clients at the same time, each with an origin of its own.
#[derive(Debug)]
pub struct Storm {
    plan: Plan,
    start: Instant,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    name: &'static str,
    origin: Origin,
    tally: Arc<Tally>,
    calls: JoinHandle<Result<Vec<Call>, BoxError>>,
}

/// What a client's calls came to.
#[derive(Debug)]
pub struct Outcome {
    /// The client's name.
    pub name: &'static str,
    /// Its calls in the order of their start: call `k` was due `k / rate` seconds into the run.
    pub calls: Vec<Call>,
    /// What was counted meanwhile.
    pub tally: Arc<Tally>,
}

impl Storm {
    /// A storm that breaks in a moment: add the clients at once.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, start: Instant::now() + Duration::from_millis(250), lanes: Vec::new() }
    }

    /// Adds a client: `wrap` puts its middleware around a plain HTTP client.
    ///
    /// # Errors
    ///
    /// If its origin cannot be started.
    pub async fn add<W, S, B, R>(&mut self, name: &'static str, wrap: W) -> io::Result<()>
    where
        W: FnOnce(HttpClient<B>) -> S,
        S: Service<Get, Response = http::Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError> + Send,
        B: Body + Send,
        B::Data: Send,
        R: Body + Send + 'static,
        R::Data: Send,
        R::Error: Send,
    {
        let origin = Origin::start(self.plan.workers, self.plan.service_time).await?;
        let tally = Arc::new(Tally::new(self.start, &self.plan));
        let client = legacy::Client::builder(TokioExecutor::new()).build_http();
        let service = wrap(Counted { inner: client, tally: Arc::clone(&tally) });
        let calls = drive(service, origin.uri().clone(), self.plan, self.start, Arc::clone(&tally));
        self.lanes.push(Lane { name, origin, tally, calls: tokio::spawn(calls) });
        Ok(())
    }

    /// Waits until the last call has ended, and shows the progress on stderr meanwhile.
    ///
    /// # Errors
    ///
    /// If a call's task panicked.
    pub async fn run(self) -> Result<Vec<Outcome>, BoxError> {
        let watched = self.lanes.iter().map(|lane| (lane.name, Arc::clone(&lane.tally)));
        let progress = tokio::spawn(progress::show(self.plan, self.start, watched.collect()));

        sleep_until(self.start + Duration::from_secs(self.plan.health.into())).await;
        self.lanes.iter().for_each(|lane| lane.origin.stall());
        sleep_until(self.start + Duration::from_secs(self.plan.release().into())).await;
        self.lanes.iter().for_each(|lane| lane.origin.release());

        let mut outcomes = Vec::with_capacity(self.lanes.len());
        for Lane { name, tally, calls, origin: _origin } in self.lanes {
            outcomes.push(Outcome { name, calls: calls.await??, tally });
        }
        progress.abort();
        // Waited for, so that it doesn't write into the report.
        let _ = progress.await;
        Ok(outcomes)
    }
}

async fn drive<S, R>(
    service: S,
    uri: Uri,
    plan: Plan,
    start: Instant,
    tally: Arc<Tally>,
) -> Result<Vec<Call>, BoxError>
where
    S: Service<Get, Response = http::Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError> + Send,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Send,
{
    let mut calls = Vec::new();
    for k in 0..plan.rate * plan.end() {
        // From the start, not from the call before: the loop catches up when it woke late, and never skips.
        let due = start + Duration::from_secs(k.into()) / plan.rate;
        sleep_until(due).await;
        let (service, uri, tally) = (service.clone(), uri.clone(), Arc::clone(&tally));
        calls.push(tokio::spawn(async move {
            let success = succeeds(service, uri, &tally).await;
            if success {
                tally.success();
            }
            Call { latency: due.elapsed(), success }
        }));
    }
    let mut ended = Vec::with_capacity(calls.len());
    for call in calls {
        ended.push(call.await?);
    }
    Ok(ended)
}

async fn succeeds<S, R>(service: S, uri: Uri, tally: &Tally) -> bool
where
    S: Service<Get, Response = http::Response<R>>,
    S::Error: Into<BoxError>,
    R: Body,
{
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri;
    match service.oneshot(request).await {
        Ok(response) => {
            response.status() == StatusCode::OK && response.into_body().collect().await.is_ok()
        }
        Err(error) => {
            if let Some(reason) = unopened(error.into().as_ref()) {
                tally.note_unopened(reason);
            }
            false
        }
    }
}

/// Why no connection could be opened, if that is what `error` says.
fn unopened(error: &(dyn Error + 'static)) -> Option<String> {
    let mut chain = std::iter::successors(Some(error), |&error| error.source());
    chain.find(|error| error.downcast_ref().is_some_and(legacy::Error::is_connect))?;
    chain.last().map(ToString::to_string)
}
