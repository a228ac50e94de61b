use std::io;
use std::time::Duration;

use abate::{ErrorKind, Fault, StopReason};
use anyhow::Context as _;
use http::{HeaderValue, Method};
use http_body_util::{BodyExt, Full};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tower::ServiceExt;

use super::Protocol::Http1;
use super::real_bodies_server::{BUSY, Got, OK, Peer, Server};
use super::{FRAMES, PATIENCE, Parts, Test};
use super::{call, fed, feed, put, request, sized, stack, steady, streamed, told, trailers, whole};

/// Answers the first request with `first` once it is there, and all others with 200.
async fn after_all(mut peer: Peer, first: &str) -> io::Result<()> {
    let mut answer = if peer.number == 0 { first } else { OK };
    loop {
        peer.request().await?;
        peer.send(answer).await?;
        answer = OK;
    }
}

// BR-01, BR-07
#[tokio::test]
async fn a_stream_goes_over_the_wire_twice_the_same_in_chunks_with_trailers_and_sized() -> Test {
    let with_trailers = || streamed().with_trailers(Box::pin(async { Some(Ok(trailers())) }));
    for (form, header) in
        [(0, "transfer-encoding"), (1, "transfer-encoding"), (2, "content-length")]
    {
        let mut server = Server::start(|peer| after_all(peer, BUSY)).await?;
        let body = match form {
            0 => streamed().boxed_unsync(),
            1 => with_trailers().boxed_unsync(),
            _ => sized(streamed()).boxed_unsync(),
        };
        let mut put = put(server.address, body);
        if form == 1 {
            put.headers_mut().insert("trailer", HeaderValue::from_static("x-sum"));
        }
        let response = call(Http1, steady(), put).await?;
        assert_eq!(told(&response), (vec![503, 200], None));
        let (first, second) = (server.got().await?, server.got().await?);
        assert!(first.header(header).is_some(), "{first:?}");
        assert!(first.body == whole());
        assert_eq!(first.trailers, if form == 1 { "x-sum: 10000\n" } else { "" });
        assert_eq!(first, second);
    }
    Ok(())
}

/// Answers with 503 after the first chunk of the first request, and does `then`.
async fn amid(mut peer: Peer, then: Then) -> io::Result<()> {
    if peer.number > 0 {
        return after_all(peer, OK).await;
    }
    let mut got = peer.head().await?;
    got.body = peer.chunk().await?;
    peer.send(BUSY).await?;
    match then {
        Then::Closes => Ok(()),
        Then::ReadsOn => {
            peer.rest(&mut got).await?;
            peer.note(&got)?;
            after_all(peer, OK).await
        }
        Then::Stops => std::future::pending().await,
    }
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Closes,
    ReadsOn,
    Stops,
}

// BR-04
#[tokio::test]
async fn an_answer_after_the_first_of_a_hundred_frames_is_retried_with_all_of_them() -> Test {
    for then in [Then::Closes, Then::ReadsOn] {
        let mut server = Server::start(move |peer| amid(peer, then)).await?;
        let response = call(Http1, steady(), put(server.address, streamed())).await?;
        let (tried, stop) = told(&response);
        // Closed with something unread, a connection is reset, and its answer may be lost.
        let lost = matches!(then, Then::Closes) && tried == [0, 200];
        assert!((lost || tried == [503, 200]) && stop.is_none(), "{then:?}: {tried:?}, {stop:?}");
        let mut got = server.got().await?;
        if let Then::ReadsOn = then {
            assert!(got.body == whole(), "the first upload was not cut short");
            got = server.got().await?;
        }
        assert!(got.body == whole(), "{then:?}");
    }
    Ok(())
}

// BR-04
#[tokio::test]
async fn a_stream_that_is_still_being_produced_is_let_go_with_its_connection_and_read_on() -> Test {
    let (second, began) = mpsc::unbounded_channel();
    let mut server = Server::start(move |peer| {
        let second = second.clone();
        async move {
            match peer.number {
                0 => amid(peer, Then::Closes).await,
                _ => tell_and_serve(peer, &second).await,
            }
        }
    })
    .await?;
    let (parts, body) = fed();
    feed(&parts, 0..1)?;
    let call = tokio::spawn(call(Http1, steady(), put(server.address, body)));
    feed_the_rest_once(began, parts, 1).await?;
    assert_eq!(told(&call.await??), (vec![503, 200], None));
    assert!(server.got().await?.body == whole());
    Ok(())
}

// BR-04
#[tokio::test]
async fn a_stream_that_the_first_attempt_goes_on_reading_has_no_second_reader() -> Test {
    for then in [Then::ReadsOn, Then::Stops] {
        let server = Server::start(move |peer| amid(peer, then)).await?;
        let (parts, body) = fed();
        feed(&parts, 0..1)?;
        let response = call(Http1, steady(), put(server.address, body)).await?;
        assert_eq!(told(&response), (vec![503], Some(StopReason::BodyNotReplayable)), "{then:?}");
        assert_eq!(server.all(), []);
    }
    Ok(())
}

/// Tells when the head is there, and answers when all is.
async fn tell_and_serve(mut peer: Peer, began: &mpsc::UnboundedSender<()>) -> io::Result<()> {
    let mut got = peer.head().await?;
    began.send(()).map_err(io::Error::other)?;
    peer.rest(&mut got).await?;
    peer.note(&got)?;
    peer.send(OK).await
}

async fn feed_the_rest_once(
    mut began: mpsc::UnboundedReceiver<()>,
    parts: Parts,
    from: usize,
) -> Test {
    timeout(PATIENCE, began.recv()).await?.context("the second attempt did not begin")?;
    feed(&parts, from..FRAMES)
}

// BR-01
#[tokio::test]
async fn an_attempt_that_times_out_amid_its_upload_is_followed_by_a_whole_one() -> Test {
    for length_known in [false, true] {
        let (second, began) = mpsc::unbounded_channel();
        let mut server = Server::start(move |mut peer| {
            let second = second.clone();
            async move {
                match peer.number {
                    0 => peer.drain().await,
                    _ => tell_and_serve(peer, &second).await,
                }
            }
        })
        .await?;
        let (parts, body) = fed();
        feed(&parts, 0..40)?;
        let body = if length_known { sized(body).boxed_unsync() } else { body.boxed_unsync() };
        let policy = steady().with_attempt_timeout(Duration::from_millis(500));
        let call = tokio::spawn(call(Http1, policy, put(server.address, body)));
        feed_the_rest_once(began, parts, 40).await?;
        assert_eq!(told(&call.await??), (vec![0, 200], None));
        assert!(server.got().await?.body == whole());
    }
    Ok(())
}

// BR-01
#[tokio::test]
async fn a_stream_over_the_limit_arrives_once_and_whole() -> Test {
    let mut server = Server::start(|peer| after_all(peer, BUSY)).await?;
    let (parts, body) = fed();
    (0..8).try_for_each(|_| feed(&parts, 0..FRAMES))?;
    drop(parts);
    let response = call(Http1, steady(), put(server.address, body)).await?;
    assert_eq!(told(&response), (vec![503], Some(StopReason::BodyNotReplayable)));
    assert!(server.got().await?.body == whole().repeat(8));
    assert_eq!(server.all(), []);
    Ok(())
}

#[tokio::test]
async fn a_stream_that_breaks_is_the_callers_own_and_no_part_of_it_is_sent_again() -> Test {
    let server = Server::start(|peer| after_all(peer, OK)).await?;
    let (parts, body) = fed();
    feed(&parts, 0..2)?;
    parts.send(Err(io::Error::other("torn")))?;
    let call = stack(Http1, steady())?.oneshot(put(server.address, body));
    let error = timeout(PATIENCE, call).await?.unwrap_err();
    let what = (error.kind(), error.fault(), error.attempts());
    assert_eq!(what, (ErrorKind::Client, Fault::Permanent, 1));
    assert_eq!(server.all(), []);
    Ok(())
}

// BR-12
#[tokio::test]
async fn an_expectation_that_fails_is_final_and_nobody_waits_for_a_100() -> Test {
    const FAILED: &str = "HTTP/1.1 417 Expectation Failed\r\ncontent-length: 2\r\n\r\nno";
    let server = Server::start(|peer| after_all(peer, FAILED)).await?;
    let mut post = request(Method::POST, server.address, Full::from(vec![7; 2048]));
    post.headers_mut().insert("expect", HeaderValue::from_static("100-continue"));
    let response = call(Http1, steady(), post).await?;
    assert_eq!(response.status(), 417);
    assert_eq!(response.into_body().collect().await?.to_bytes(), "no");
    let got = server.all();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].header("expect"), &got[0].body), (Some("100-continue"), &vec![7; 2048]));
    Ok(())
}

// BR-12
#[tokio::test]
async fn a_pooled_connection_that_dies_instead_of_a_100_costs_no_byte_of_the_body() -> Test {
    let mut server = Server::start(|mut peer| async move {
        if peer.number > 0 {
            return after_all(peer, OK).await;
        }
        peer.request().await?;
        peer.send(OK).await?;
        // It dies at the next request.
        peer.head().await.map(drop)
    })
    .await?;
    let service = stack(Http1, steady())?;
    let first = put(server.address, streamed().boxed_unsync());
    let first = timeout(PATIENCE, service.clone().oneshot(first)).await??;
    assert_eq!(told(&first), (vec![], None));
    server.got().await?;
    let mut next = put(server.address, streamed().boxed_unsync());
    next.headers_mut().insert("expect", HeaderValue::from_static("100-continue"));
    let next = timeout(PATIENCE, service.oneshot(next)).await??;
    assert_eq!(told(&next), (vec![0, 200], None));
    assert!(server.got().await?.body == whole());
    Ok(())
}

// BR-09
#[tokio::test]
async fn the_last_of_three_errors_is_readable_whether_or_not_the_stream_could_be_sent_again() -> Test
{
    const WHY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 11\r\n\r\n{\"why\":\"x\"}";
    for (repeats, attempts) in [(1, 3), (8, 1)] {
        let mut server = Server::start(|mut peer| async move {
            loop {
                peer.request().await?;
                peer.send(WHY).await?;
            }
        })
        .await?;
        let (parts, body) = fed();
        (0..repeats).try_for_each(|_| feed(&parts, 0..FRAMES))?;
        drop(parts);
        let response = call(Http1, steady(), put(server.address, body)).await?;
        assert_eq!(told(&response).0, vec![503; attempts]);
        assert_eq!(response.into_body().collect().await?.to_bytes(), "{\"why\":\"x\"}");
        for _ in 0..attempts {
            let got: Got = server.got().await?;
            assert!(got.body == whole().repeat(repeats));
        }
    }
    Ok(())
}
