//! `abate::client`.

use std::error::Error as _;

use abate::client::BuildError;
use abate::{Body, Client, ErrorKind, Policy, Report};
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{HeaderValue, Request, Version};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use tower::{Service, ServiceExt};

use super::{Server, Test, assert_opens, quick, single, status, tried};

fn client(policy: Policy) -> Client {
    Client::builder(policy).without_platform_roots().build().unwrap()
}

#[tokio::test]
async fn a_call_is_retried_with_its_whole_body_and_read_to_its_end() -> Test {
    let server = Server::answering([503, 503, 200]).await?;
    let mut client = client(quick());
    let request = Request::put(server.url("/item")).body(Body::from("three"))?;
    let response = client.ready().await?.call(request).await?;
    assert_eq!(tried(response.extensions()), [503, 503, 200]);
    assert_eq!(response.into_body().collect().await?.to_bytes(), "body");
    assert_eq!(server.log(), ["PUT /item three"; 3]);
    assert_eq!(client.limit().in_use(), 0);
    Ok(())
}

#[tokio::test]
async fn bodies_of_every_making_arrive() -> Test {
    let server = Server::answering([200]).await?;
    let client = client(quick());
    let frames = ["one", "two"].map(|data| Ok::<_, std::io::Error>(Frame::data(Bytes::from(data))));
    let bodies = [
        Body::from("text"),
        Body::from(String::from("text")),
        Body::from(vec![b'v']),
        Body::from(Bytes::from("bytes")),
        Body::from(&b"slice"[..]),
        Body::new(Full::<Bytes>::from("full")),
        Body::new(StreamBody::new(stream::iter(frames))),
        Body::empty(),
    ];
    for body in bodies {
        let response = client.request(Request::post(server.url("/")).body(body)?).await?;
        assert_eq!(response.status(), 200);
    }
    client.request(Request::post(server.url("/")).body("into")?).await?;
    let seen: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(seen, ["text", "text", "v", "bytes", "slice", "full", "onetwo", "", "into"]);
    Ok(())
}

#[tokio::test]
async fn what_the_server_asks_to_wait_is_waited() -> Test {
    let server = Server::hinting().await?;
    let response = client(quick()).request(Request::get(server.url("/")).body(())?).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    let waited = response.extensions().get().map(Report::waited).unwrap();
    assert!(waited.as_millis() >= 300, "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn each_authority_has_a_breaker_of_its_own() -> Test {
    let (down, up) = (Server::answering([503]).await?, Server::answering([200]).await?);
    let client = client(single());
    let get = |server: &Server| client.request(Request::get(server.url("/")).body(()).unwrap());
    get(&down).await?;
    let breaker = client.breaker().key(&down.authority()).unwrap();
    assert_opens(&breaker, async || drop(get(&down).await)).await;

    let seen = down.seen().len();
    assert_eq!(get(&down).await.unwrap_err().kind(), ErrorKind::BreakerOpen);
    assert_eq!(down.seen().len(), seen, "a refused call goes nowhere");
    assert_eq!(get(&up).await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn the_protocol_is_agreed_on_in_the_handshake() -> Test {
    for (offered, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let (server, root) = Server::secure(offered).await?;
        let url = format!("https://localhost:{}/", server.address.port());
        let client = Client::builder(quick())
            .without_platform_roots()
            .with_root_certificates(root)
            .build()?;
        let response = client.request(Request::put(&url).body("data")?).await?;
        assert_eq!((response.version(), tried(response.extensions())), (version, vec![503, 200]));
        assert!(server.seen().iter().all(|seen| seen.version == version && seen.body == "data"));
    }
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_nobody_is_an_error_and_nothing_is_sent() -> Test {
    let (server, _) = Server::secure(&["h2"]).await?;
    let (_, other) = Server::secure(&["h2"]).await?;
    let url = format!("https://localhost:{}/", server.address.port());
    let client = Client::builder(single()).without_platform_roots().with_root_certificates(other);
    let error = client.build()?.request(Request::get(&url).body(())?).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Client);
    assert!(error.source().unwrap().is::<hyper_util::client::legacy::Error>(), "{error:?}");
    assert_eq!(server.seen().len(), 0);
    Ok(())
}

#[tokio::test]
async fn the_platforms_root_certificates_are_trusted_or_missed_aloud() {
    match abate::client(Policy::default()) {
        Ok(client) => assert_eq!(client.limit().max(), None),
        Err(error) => assert!(matches!(error, BuildError::NoPlatformRoots(_)), "{error:?}"),
    }
}

#[test]
fn a_root_certificate_that_is_none_is_refused() {
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for pem in ["", "hello", "-----BEGIN CERTIFICATE-----\n", broken] {
        let builder = Client::builder(Policy::default()).without_platform_roots();
        let error = builder.with_root_certificates(pem).build().unwrap_err();
        assert!(matches!(error, BuildError::RootCertificate(_)), "{pem:?}: {error:?}");
    }
}

/// `hello, unzipped`
const ZIPPED: [u8; 35] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 215, 81, 40, 205, 171, 202, 44, 40,
    72, 77, 1, 0, 80, 75, 142, 147, 15, 0, 0, 0,
];

/// 503, and then 200 with this, each said to be zipped.
async fn zipping(data: &'static [u8]) -> anyhow::Result<Server> {
    Server::start(move |nth, _| {
        let mut response = status(if nth == 0 { 503 } else { 200 }).map(|_| Full::from(data));
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        Some(response)
    })
    .await
}

#[tokio::test]
async fn a_zipped_response_is_unzipped_and_every_attempt_asks_for_it() -> Test {
    let server = zipping(&ZIPPED).await?;
    let response = client(quick()).request(Request::get(server.url("/")).body(())?).await?;
    assert_eq!(tried(response.extensions()), [503, 200]);
    assert!(!response.headers().contains_key(CONTENT_ENCODING));
    assert_eq!(response.into_body().collect().await?.to_bytes(), "hello, unzipped");
    for seen in server.seen() {
        let accepted = seen.headers[ACCEPT_ENCODING].to_str()?;
        assert!(accepted.contains("gzip"), "{accepted}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_zipped_though_it_says_so_is_an_error_of_the_body() -> Test {
    let server = zipping(b"hello, not zipped").await?;
    let client = client(quick());
    let response = client.request(Request::get(server.url("/")).body(())?).await?;
    let error: abate::Error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Client);
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    assert!(source.is_some(), "{error:?}");
    assert_eq!(client.limit().in_use(), 0);
    Ok(())
}

#[tokio::test]
async fn clients_and_their_calls_go_to_other_threads() -> Test {
    fn goes<T: Clone + Send + Sync + 'static>(client: T) -> T {
        client
    }
    let server = Server::answering([200]).await?;
    let client = goes(client(quick()));
    let request = Request::get(server.url("/")).body(())?;
    let mut response = tokio::spawn(client.request(request)).await??;
    assert!(response.body_mut().frame().await.unwrap().is_ok(), "it can be read where it is");
    Ok(())
}
