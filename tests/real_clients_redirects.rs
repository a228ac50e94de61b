//! `abate::client` and what is elsewhere.

use std::time::Duration;

use abate::{Body, Client, Idempotent, Policy};
use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http::header::{AUTHORIZATION, COOKIE, LOCATION};
use http_body::Frame;
use http_body_util::StreamBody;

use super::{Answer, Server, Test, quick, single, status, to, tried};

fn client(policy: Policy) -> Client {
    Client::builder(policy).without_platform_roots().build().unwrap()
}

/// `/old` leads to `/new`, which answers these.
async fn moved<const N: usize>(code: u16, statuses: [u16; N]) -> anyhow::Result<Server> {
    Server::start(move |nth, seen| {
        Some(match &*seen.path {
            "/old" => to(code, "/new"),
            _ => status(statuses[(nth / 2).min(N - 1)]),
        })
    })
    .await
}

// AM-03
#[tokio::test]
async fn a_repeat_begins_at_the_requests_own_uri_with_its_whole_body() -> Test {
    for code in [307, 308] {
        let server = moved(code, [503, 200]).await?;
        let mut request = Request::post(server.url("/old")).body("data")?;
        request.extensions_mut().insert(Idempotent(true));
        let response = client(quick()).request(request).await?;
        assert_eq!(tried(response.extensions()), [503, 200], "redirects are no attempts");
        let exchange = ["POST /old data", "POST /new data"];
        assert_eq!(server.log(), [exchange, exchange].concat());
    }
    Ok(())
}

// AM-03
#[tokio::test]
async fn a_post_that_a_redirect_made_a_get_is_not_repeated() -> Test {
    for code in [301, 302, 303] {
        let server = moved(code, [503]).await?;
        let request = Request::post(server.url("/old")).body("data")?;
        let response = client(quick()).request(request).await?;
        assert_eq!((response.status().as_u16(), tried(response.extensions())), (503, vec![503]));
        assert_eq!(server.log(), ["POST /old data", "GET /new"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_body_goes_along_though_nothing_would_be_repeated() -> Test {
    let server = moved(307, [200]).await?;
    let request = Request::post(server.url("/old")).body("data")?;
    assert_eq!(client(single()).request(request).await?.status(), 200);
    assert_eq!(server.log(), ["POST /old data", "POST /new data"]);
    Ok(())
}

#[tokio::test]
async fn a_stream_cannot_go_along_and_the_redirect_is_the_response() -> Test {
    let server = moved(307, [200]).await?;
    let frames = [Ok::<_, std::io::Error>(Frame::data(Bytes::from("data")))];
    let body = Body::new(StreamBody::new(stream::iter(frames)));
    let response = client(quick()).request(Request::put(server.url("/old")).body(body)?).await?;
    assert_eq!(
        (response.status().as_u16(), &response.headers()[LOCATION]),
        (307, &"/new".parse()?)
    );
    assert_eq!(server.log(), ["PUT /old data"]);
    Ok(())
}

// AM-03
#[tokio::test]
async fn what_is_for_one_origin_goes_to_no_other_however_many_hops_there_are() -> Test {
    let elsewhere = Server::start(|_, seen| {
        Some(if seen.path == "/end" { status(200) } else { to(302, "/end") })
    })
    .await?;
    let away = elsewhere.url("/start");
    let server =
        Server::start(move |nth, _| Some(if nth == 0 { to(302, "/") } else { to(302, &away) }));
    let server = server.await?;
    let request = Request::get(server.url("/"))
        .header(AUTHORIZATION, "Bearer x")
        .header(COOKIE, "session=1")
        .header("host", "stock.internal")
        .header("x-trace", "7")
        .body(())?;
    assert_eq!(client(quick()).request(request).await?.status(), 200);
    assert_eq!((server.seen().len(), elsewhere.seen().len()), (2, 2));
    for seen in server.seen() {
        assert_eq!(seen.headers[AUTHORIZATION], "Bearer x");
        assert_eq!(
            (&seen.headers[COOKIE], &seen.headers["host"]),
            (&"session=1".parse()?, &"stock.internal".parse()?)
        );
    }
    for seen in elsewhere.seen() {
        assert!(!seen.headers.contains_key(AUTHORIZATION) && !seen.headers.contains_key(COOKIE));
        assert_eq!(seen.headers["host"], elsewhere.authority());
        assert_eq!(seen.headers["x-trace"], "7");
    }
    Ok(())
}

#[tokio::test]
async fn hops_without_end_are_ended() -> Test {
    for (at_most, seen) in [(10, 11), (0, 1)] {
        let server = Server::start(|_, _| Some(to(302, "/"))).await?;
        let builder = Client::builder(quick()).without_platform_roots().with_redirects(at_most);
        let response = builder.build()?.request(Request::get(server.url("/")).body(())?).await?;
        assert_eq!((response.status().as_u16(), server.seen().len()), (302, seen));
    }
    Ok(())
}

#[tokio::test]
async fn a_redirect_that_is_not_http_is_the_response() -> Test {
    for elsewhere in ["ftp://a/b", "mailto:a@b", "//", ""] {
        let server = Server::start(move |_, _| Some(to(302, elsewhere)));
        let server = server.await?;
        let builder = Client::builder(quick()).without_platform_roots().with_redirects(3);
        let response = builder.build()?.request(Request::get(server.url("/")).body(())?).await?;
        assert_eq!(response.status(), 302, "{elsewhere}");
    }
    Ok(())
}

#[tokio::test]
async fn a_timeout_of_an_attempt_is_one_of_all_its_hops() -> Test {
    let server = Server::start(|_, seen| -> Option<Answer> {
        (seen.path == "/old").then(|| to(307, "/new"))
    });
    let server = server.await?;
    let policy =
        Policy::builder().with_attempts(2).with_attempt_timeout(Duration::from_millis(200));
    let client = client(policy.build()?.without_backoff());
    let error = client.request(Request::get(server.url("/old")).body(())?).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (abate::ErrorKind::AttemptTimeout, 2));
    assert_eq!(server.log(), ["GET /old", "GET /new", "GET /old", "GET /new"]);
    Ok(())
}
