//! Our layers as middleware of reqwest-middleware.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use abate::{
    Attempt, Deadline, ErrorKind, Fault, Idempotent, Policy, Report, RetryLayer, Stack, StopReason,
    fault,
};
use http::{Extensions, Method};
use reqwest::{Request, Response};
use reqwest_middleware::{
    ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result as Answered,
};

use super::{Server, Test, assert_opens, quick, single, status, tried};

fn plain() -> reqwest::Client {
    reqwest::Client::builder().retry(reqwest::retry::never()).build().unwrap()
}

fn client(middleware: impl Middleware) -> ClientWithMiddleware {
    ClientBuilder::new(plain()).with(middleware).build()
}

/// Ours in an error of theirs.
fn ours(error: &Error) -> &abate::Error {
    let ours = match error {
        Error::Middleware(error) => error.downcast_ref(),
        Error::Reqwest(_) => None,
    };
    ours.unwrap()
}

#[tokio::test]
async fn a_stack_and_a_retry_alone_are_middleware() -> Test {
    for client in [client(Stack::new(quick())), client(RetryLayer::new(quick()))] {
        let server = Server::answering([503, 503, 200]).await?;
        let response = client.put(server.url("/a")).body("data").send().await?;
        assert_eq!(tried(response.extensions()), [503, 503, 200]);
        assert_eq!(response.url().as_str(), server.url("/a"));
        assert_eq!(response.text().await?, "body");
        assert_eq!(server.log(), ["PUT /a data"; 3]);
    }
    Ok(())
}

#[tokio::test]
async fn what_the_server_asks_to_wait_is_waited() -> Test {
    let server = Server::hinting().await?;
    let response = client(RetryLayer::new(quick())).get(server.url("/")).send().await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    let waited = response.extensions().get().map(Report::waited).unwrap();
    assert!(waited.as_millis() >= 300, "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn a_breaker_and_a_budget_are_those_of_all_calls() -> Test {
    let server = Server::answering([503]).await?;
    let stack = Stack::new(single());
    let client = client(stack.clone());
    assert_opens(&stack.breaker(), async || drop(client.get(server.url("/")).send().await)).await;
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(ours(&error).kind(), ErrorKind::BreakerOpen);
    assert!(ours(&error).retry_at().is_some());
    Ok(())
}

#[tokio::test]
async fn the_last_response_is_handed_on_with_the_reason() -> Test {
    let server = Server::answering([503]).await?;
    let response = client(RetryLayer::new(quick())).post(server.url("/")).send().await?;
    assert_eq!(response.status(), 503);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.stop_reason(), Some(StopReason::NotIdempotent));
    Ok(())
}

#[tokio::test]
async fn a_stream_is_sent_again_from_its_record_instead_of_refused() -> Test {
    let server = Server::answering([503, 200]).await?;
    let body =
        reqwest::Body::wrap(http_body_util::StreamBody::new(futures_util::stream::iter([Ok::<
            _,
            std::io::Error,
        >(
            http_body::Frame::data(bytes::Bytes::from("data")),
        )])));
    let response = client(RetryLayer::new(quick())).put(server.url("/")).body(body).send().await?;
    assert_eq!(response.status(), 200);
    assert_eq!(server.log(), ["PUT / data", "PUT / data"]);
    Ok(())
}

/// A note for the middleware below.
#[derive(Debug, Clone, PartialEq)]
struct Note(u32);

/// Its number, the note, and the fragment of the URL.
type Brought = (Option<u32>, Option<Note>, Option<String>);

/// Notes what each attempt brings, and leaves a note of its own.
#[derive(Default)]
struct Below {
    attempts: Mutex<Vec<Brought>>,
}

#[async_trait::async_trait]
impl Middleware for Below {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Answered<Response> {
        let number = extensions.get::<Attempt>().map(|attempt| attempt.number());
        let note = extensions.get::<Note>().cloned();
        let fragment = request.url().fragment().map(str::to_owned);
        let nth = {
            let mut attempts = self.attempts.lock().unwrap();
            attempts.push((number, note, fragment));
            attempts.len()
        };
        extensions.insert(Note(100 + nth as u32));
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn each_attempt_gets_what_the_caller_gave_and_the_caller_what_the_last_one_left() -> Test {
    let server = Server::answering([503, 503, 200]).await?;
    let below = Arc::new(Below::default());
    let client = ClientBuilder::new(plain())
        .with(RetryLayer::new(quick()))
        .with_arc(Arc::clone(&below) as Arc<dyn Middleware>)
        .build();
    let mut extensions = Extensions::new();
    extensions.insert(Note(7));
    let request = plain().get(server.url("/#frag")).build()?;
    client.execute_with_extensions(request, &mut extensions).await?;
    let brought = |number| (number, Some(Note(7)), Some("frag".to_owned()));
    let expected = [None, Some(2), Some(3)].map(brought);
    assert_eq!(*below.attempts.lock().unwrap(), expected);
    assert_eq!(extensions.get(), Some(&Note(103)));
    Ok(())
}

#[tokio::test]
async fn marks_and_deadlines_are_found_among_the_extensions_of_the_call() -> Test {
    let server = Server::answering([503, 200]).await?;
    let client = client(Stack::new(quick()));
    let marked = client.post(server.url("/")).with_extension(Idempotent(true)).send().await?;
    assert_eq!(tried(marked.extensions()), [503, 200]);

    let hangs = Server::start(|_, _| None).await?;
    let end = Deadline::after(std::time::Instant::now(), Duration::from_millis(150));
    let error = client.get(hangs.url("/")).with_extension(end).send().await.unwrap_err();
    assert_eq!(ours(&error).kind(), ErrorKind::Deadline);
    Ok(())
}

/// Fails with an error of its own, which says what it means.
struct Failing {
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Middleware for Failing {
    async fn handle(&self, _: Request, _: &mut Extensions, _: Next<'_>) -> Answered<Response> {
        self.calls.fetch_add(1, Ordering::Relaxed); // a count
        Err(Error::middleware(fault::Known::new(self.fault)))
    }
}

#[tokio::test]
async fn errors_of_the_middleware_below_are_known_by_their_types() {
    for (fault, attempts) in [(Fault::Unsent, 3), (Fault::Permanent, 1), (Fault::Ambiguous, 1)] {
        let calls = Arc::new(AtomicUsize::new(0));
        let failing = Failing { fault, calls: Arc::clone(&calls) };
        let client =
            ClientBuilder::new(plain()).with(RetryLayer::new(quick())).with(failing).build();
        let error = client.request(Method::POST, "http://stock.internal/").send().await;
        let error = error.unwrap_err();
        assert_eq!(ours(&error).fault(), fault, "{error:?}");
        assert_eq!(calls.load(Ordering::Relaxed), attempts); // a count
    }
}

#[tokio::test]
async fn a_refusal_of_layers_below_is_not_retried() -> Test {
    let server = Server::answering([200]).await?;
    let (outer, inner) = (RetryLayer::new(quick()), Stack::new(quick()));
    inner.breaker().force_open();
    let client = ClientBuilder::new(plain()).with(outer).with(inner).build();
    let error = client.get(server.url("/")).send().await.unwrap_err();
    assert_eq!(ours(&error).kind(), ErrorKind::BreakerOpen, "ours is passed on as it is");
    assert_eq!(server.seen().len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_timeout_of_the_request_is_one_of_each_attempt() -> Test {
    let server = Server::start(|nth, _| (nth == 1).then(|| status(200))).await?;
    let policy: Policy = quick();
    let call = client(RetryLayer::new(policy)).get(server.url("/"));
    let response = call.timeout(Duration::from_millis(150)).send().await?;
    assert_eq!(tried(response.extensions()), [0, 200]);
    Ok(())
}
