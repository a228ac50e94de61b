//! What the caller itself broke is neither repeated nor held against the dependency.

mod real_faults_reqwest;

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use abate::{BreakerState, ErrorKind, Fault, Policy, Stack, StopReason, fault};
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tower::{BoxError, Layer, ServiceExt};

type Test = Result<(), BoxError>;

/// A server that reads every body to its end, and says yes.
async fn server() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let answer = service_fn(|request: Request<Incoming>| async {
                let _ = request.into_body().collect().await;
                Ok::<_, Infallible>(Response::new(String::from("yes")))
            });
            let io = TokioIo::new(connection);
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, answer));
        }
    });
    Ok(format!("http://{address}/"))
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_is_tried_once() -> Test {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let service = Stack::new(Policy::default()).layer(client);
    let error = service.oneshot(Request::new(Body::empty())).await.unwrap_err();
    assert_eq!((error.kind(), error.fault()), (ErrorKind::Client, Fault::Permanent));
    assert_eq!(error.attempts(), 1, "a relative URI stays one");
    let reason = error.report().and_then(abate::Report::stop_reason);
    assert_eq!(reason, Some(StopReason::NotRetryable));
    Ok(())
}

#[tokio::test]
async fn bodies_that_their_callers_break_do_not_open_the_breaker() -> Test {
    let url = server().await?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let stack = Stack::new(Policy::default());
    let (breaker, service) = (stack.breaker(), stack.layer(client));
    let started = tokio::time::Instant::now();
    // Longer than the evidence that a breaker asks for, and more often.
    while started.elapsed() < Duration::from_millis(2_500) {
        let frames = [Ok(Frame::data(Bytes::from("half"))), Err(io::Error::other("gone"))];
        let body = StreamBody::new(stream::iter(frames));
        let error = service.clone().oneshot(Request::put(&url).body(body)?).await.unwrap_err();
        assert_eq!((error.fault(), error.attempts()), (Fault::Permanent, 1), "{error:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    Ok(())
}

#[tokio::test]
async fn what_broke_a_body_is_no_word_on_the_request_that_carried_it() -> Test {
    let url = server().await?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    // The response of another call, say, handed on: that one was not sent; this one was, in part.
    let unsent = fault::Known::new(Fault::Unsent);
    let frames = [Ok(Frame::data(Bytes::from("half"))), Err(unsent)];
    let post = Request::post(&url).body(StreamBody::new(stream::iter(frames)))?;
    let error = Stack::new(Policy::default()).layer(client).oneshot(post).await.unwrap_err();
    assert_eq!((error.fault(), error.attempts()), (Fault::Permanent, 1), "{error:?}");
    Ok(())
}
