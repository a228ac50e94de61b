//! reqwest below the layers, and above them.

use std::error::Error as _;
use std::time::Duration;

use abate::test::{Answer, Dependency};
use abate::{ErrorKind, Policy, Report, ReqwestClient, ReqwestService, Stack, StackService};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::net::TcpSocket;
use tower::{Layer, ServiceExt};

use super::{Server, Test, assert_opens, quick, single, status, to, tried};

fn service() -> ReqwestService {
    ReqwestService::build(reqwest::Client::builder()).unwrap()
}

fn stack(policy: Policy) -> StackService<ReqwestService> {
    Stack::new(policy).layer(service())
}

fn client(policy: Policy) -> ReqwestClient {
    ReqwestClient::new(service(), Stack::new(policy))
}

fn put(url: &str) -> reqwest::RequestBuilder {
    reqwest::Client::new().put(url)
}

#[tokio::test]
async fn requests_of_reqwest_are_retried_and_answered_in_its_own_types() -> Test {
    let server = Server::answering([503, 200]).await?;
    let request = put(&server.url("/a?b=c#d")).body("data").build()?;
    let response = client(quick()).execute(request).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    assert_eq!(response.url().path(), "/a");
    assert_eq!(response.text().await?, "body");
    assert_eq!(server.log(), ["PUT /a?b=c data"; 2]);
    Ok(())
}

#[tokio::test]
async fn requests_of_http_are_retried_whatever_their_bodies_are() -> Test {
    let server = Server::answering([503, 200]).await?;
    // One that cannot be shared between threads.
    let body = Full::<Bytes>::from("data").boxed_unsync();
    let request = Request::put(server.url("/")).body(body)?;
    let response = stack(quick()).oneshot(request).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    assert_eq!(response.into_body().collect().await?.to_bytes(), "body");
    assert_eq!(server.log(), ["PUT / data"; 2]);
    Ok(())
}

#[tokio::test]
async fn a_stream_is_sent_again_from_its_record() -> Test {
    let server = Server::answering([503, 200]).await?;
    let frames = ["one", "two"].map(|data| Ok::<_, std::io::Error>(Frame::data(Bytes::from(data))));
    let body = BodyExt::boxed_unsync(StreamBody::new(stream::iter(frames)));
    let response = stack(quick()).oneshot(Request::put(server.url("/")).body(body)?).await?;
    assert_eq!(response.status(), 200);
    assert_eq!(server.log(), ["PUT / onetwo", "PUT / onetwo"]);
    Ok(())
}

#[tokio::test]
async fn what_the_server_asks_to_wait_is_waited() -> Test {
    let server = Server::hinting().await?;
    let response = client(quick()).execute(put(&server.url("/")).build()?).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    let waited = response.extensions().get().map(Report::waited).unwrap();
    assert!(waited.as_millis() >= 300, "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn a_breaker_refuses_what_would_fail() -> Test {
    let server = Server::answering([503]).await?;
    let stack = Stack::new(single());
    let client = ReqwestClient::new(service(), &stack);
    let call = || client.execute(put(&server.url("/")).build().unwrap());
    assert_opens(&stack.breaker(), async || drop(call().await)).await;
    let seen = server.seen().len();
    assert_eq!(call().await.unwrap_err().kind(), ErrorKind::BreakerOpen);
    assert_eq!(server.seen().len(), seen);
    Ok(())
}

#[tokio::test]
async fn a_timeout_of_the_request_is_one_of_each_attempt() -> Test {
    let server = Server::start(|nth, _| (nth == 1).then(|| status(200))).await?;
    let request = put(&server.url("/")).timeout(Duration::from_millis(150)).build()?;
    let response = client(quick()).execute(request).await?;
    assert_eq!(tried(response.extensions()), [0, 200]);

    let request = put(&server.url("/")).timeout(Duration::from_millis(50)).build()?;
    let error = client(quick()).execute(request).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Client, 3));
    let source = error.source().and_then(|source| source.downcast_ref::<reqwest::Error>());
    assert!(source.is_some_and(reqwest::Error::is_timeout), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn the_version_of_the_request_is_kept() -> Test {
    let server = Server::answering([503, 200]).await?;
    let request = put(&server.url("/")).version(Version::HTTP_10).build()?;
    client(quick()).execute(request).await?;
    let versions: Vec<_> = server.seen().iter().map(|seen| seen.version).collect();
    assert_eq!(versions, [Version::HTTP_10; 2]);
    Ok(())
}

/// A URL where nobody listens, and who keeps it so.
fn nowhere() -> std::io::Result<(TcpSocket, String)> {
    let closed = TcpSocket::new_v4()?;
    closed.bind((std::net::Ipv4Addr::LOCALHOST, 0).into())?;
    let url = format!("http://user:pass@{}/a%20b?c=d%26e", closed.local_addr()?);
    Ok((closed, url))
}

#[tokio::test]
async fn reqwest_gets_the_url_that_its_caller_had() -> Test {
    let (_closed, url) = nowhere()?;
    for url in [url.clone(), format!("{url}#frag")] {
        let request = reqwest::Request::new(http::Method::POST, url.parse()?);
        let error = client(quick()).execute(request).await.unwrap_err();
        assert_eq!(error.attempts(), 3, "a connection that is refused was sent nothing");
        let source = error.source().and_then(|source| source.downcast_ref::<reqwest::Error>());
        assert_eq!(source.unwrap().url().map(reqwest::Url::as_str), Some(&*url));
    }
    Ok(())
}

#[tokio::test]
async fn a_layer_that_changes_the_target_is_obeyed_and_the_fragment_goes() -> Test {
    let server = Server::answering([200]).await?;
    let (_closed, elsewhere) = nowhere()?;
    let target: http::Uri = server.url("/here").parse()?;
    let turned = tower::ServiceBuilder::new()
        .map_request(move |mut request: Request<reqwest::Body>| {
            *request.uri_mut() = target.clone();
            request
        })
        .service(stack(quick()));
    let client = ReqwestClient::over(turned);
    let response = client.execute(put(&format!("{elsewhere}#frag")).build()?).await?;
    assert_eq!(response.url().as_str(), server.url("/here"));
    assert_eq!(server.log(), ["PUT /here"]);
    Ok(())
}

#[tokio::test]
async fn redirects_are_followed_below_and_the_response_says_where_it_is_from() -> Test {
    let server = Server::start(|nth, seen| {
        Some(match (&*seen.path, nth) {
            ("/old", _) => to(307, "/new"),
            (_, 1) => status(503),
            _ => status(200),
        })
    })
    .await?;
    let request = put(&server.url("/old")).body("data").build()?;
    let response = client(quick()).execute(request).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    assert_eq!(response.url().as_str(), server.url("/new"));
    let exchange = ["PUT /old data", "PUT /new data"];
    assert_eq!(server.log(), [exchange, exchange].concat());

    let request = Request::put(server.url("/old")).body(String::from("data"))?;
    let response =
        reqwest::Response::from(stack(quick()).oneshot(request).await?.map(reqwest::Body::wrap));
    assert_eq!(response.url().as_str(), server.url("/new"), "also of a response of http");
    Ok(())
}

#[tokio::test]
async fn a_uri_that_is_relative_is_an_error_of_reqwest() {
    let request = Request::get("/items/7").body(String::new()).unwrap();
    let error = service().oneshot(request).await.unwrap_err();
    let source = error.source().and_then(|source| source.downcast_ref::<reqwest::Error>());
    assert!(source.is_some_and(reqwest::Error::is_builder), "{error:?}");
}

#[tokio::test]
async fn anything_may_stand_below_and_the_url_is_then_the_requests() -> Test {
    let dependency = Dependency::answering([Answer::status(503), Answer::status(200)]);
    let client = ReqwestClient::over(Stack::new(quick()).layer(dependency.clone()));
    let response = client.execute(put("http://stock.internal/items/7").build()?).await?;
    assert_eq!(response.url().as_str(), "http://stock.internal/items/7");
    assert_eq!(dependency.attempts(), [1, 2]);
    Ok(())
}

#[tokio::test]
async fn what_is_refused_by_the_protocol_is_repeated_by_us_and_not_by_reqwest() -> Test {
    let listener = tokio::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut connection = h2::server::handshake(stream).await?;
        // Refused unseen for two streams, then answered.
        for nth in 0.. {
            let Some(stream) = connection.accept().await else { break };
            let (_, mut respond) = stream?;
            match nth {
                0 | 1 => respond.send_reset(h2::Reason::REFUSED_STREAM),
                _ => drop(respond.send_response(Response::new(()), true)?),
            }
        }
        anyhow::Ok(())
    });
    let http = reqwest::Client::builder().http2_prior_knowledge();
    let client = ReqwestClient::new(ReqwestService::build(http)?, Stack::new(quick()));
    let response = client.execute(put(&url).build()?).await?;
    assert_eq!(tried(response.extensions()), [0, 0, 200]);
    Ok(())
}

#[tokio::test]
async fn calls_go_to_other_threads() -> Test {
    let server = Server::answering([200]).await?;
    let call = client(quick()).execute(put(&server.url("/")).build()?);
    assert_eq!(tokio::spawn(call).await??.status(), 200);
    Ok(())
}
