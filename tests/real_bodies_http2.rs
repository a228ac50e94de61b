use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use abate::{Fault, StopReason};
use anyhow::Context as _;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;
use tower::ServiceExt;

use super::Protocol::Http2;
use super::real_bodies_server::listen;
use super::{FRAMES, PATIENCE, Test};
use super::{call, fed, feed, frame, put, sized, stack, steady, streamed, told, trailers, whole};

/// One request at the server: its number, from 0, over all connections.
struct Stream {
    number: usize,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    notes: UnboundedSender<Got>,
}

/// What a request was found to be when it was read to its end.
#[derive(Debug, PartialEq)]
struct Got {
    length: Option<String>,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
}

impl Stream {
    fn answer(&mut self, status: u16) -> Result<(), anyhow::Error> {
        self.respond.send_response(Response::builder().status(status).body(())?, true)?;
        Ok(())
    }

    async fn data(&mut self) -> anyhow::Result<Option<Bytes>> {
        let body = self.request.body_mut();
        let data = body.data().await.transpose()?;
        if let Some(data) = &data {
            body.flow_control().release_capacity(data.len())?;
        }
        Ok(data)
    }

    /// Reads to the end, and tells the test.
    async fn read(&mut self, mut body: Vec<u8>) -> Test {
        while let Some(data) = self.data().await? {
            body.extend(data);
        }
        let trailers = self.request.body_mut().trailers().await?;
        let length = self.request.headers().get("content-length");
        let length = length.and_then(|it| it.to_str().ok()).map(str::to_owned);
        self.notes.send(Got { length, body, trailers })?;
        Ok(())
    }

    /// Reads all, and answers.
    async fn serve(&mut self, status: u16) -> Test {
        self.read(Vec::new()).await?;
        self.answer(status)
    }
}

/// Plays `script` for each request.
async fn serve<F>(
    script: impl Fn(Stream) -> F + Send + Sync + 'static,
) -> io::Result<(SocketAddr, UnboundedReceiver<Got>)>
where
    F: Future<Output = Test> + Send + 'static,
{
    let (listener, (sender, notes)) = (listen().await?, mpsc::unbounded_channel());
    let (address, script) = (listener.local_addr()?, Arc::new(script));
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut connection) = h2::server::handshake(stream).await else { continue };
            // One connection is enough for all of these.
            while let Some(Ok((request, respond))) = connection.accept().await {
                let notes = sender.clone();
                tokio::spawn(script(Stream { number, request, respond, notes }));
                number += 1;
            }
        }
    });
    Ok((address, notes))
}

async fn got(notes: &mut UnboundedReceiver<Got>) -> anyhow::Result<Got> {
    timeout(PATIENCE, notes.recv()).await?.context("nothing came")
}

// BR-01, BR-07
#[tokio::test]
async fn a_stream_goes_over_the_wire_twice_the_same_with_trailers_and_sized() -> Test {
    for form in 0..4 {
        let (address, mut notes) = serve(|mut stream| async move {
            let status = if stream.number == 0 { 503 } else { 200 };
            stream.serve(status).await
        })
        .await?;
        let more = || Box::pin(async { Some(Ok(trailers())) });
        let (body, has_length, has_trailers) = match form {
            0 => (streamed().boxed_unsync(), false, false),
            1 => (sized(streamed()).boxed_unsync(), true, false),
            2 => (streamed().with_trailers(more()).boxed_unsync(), false, true),
            _ => (http_body_util::Empty::new().with_trailers(more()).boxed_unsync(), true, true),
        };
        let response = call(Http2, steady(), put(address, body)).await?;
        assert_eq!(told(&response), (vec![503, 200], None));
        let (first, second) = (got(&mut notes).await?, got(&mut notes).await?);
        assert!(first.body == if form == 3 { Vec::new() } else { whole() });
        assert_eq!((first.length.is_some(), first.trailers.is_some()), (has_length, has_trailers));
        assert_eq!(first, second);
    }
    Ok(())
}

// BR-04
#[tokio::test]
async fn an_answer_and_a_reset_after_the_first_of_a_hundred_frames_are_retried_with_all() -> Test {
    for produced in [1, FRAMES] {
        let (second, mut began) = mpsc::unbounded_channel();
        let (address, mut notes) = serve(move |mut stream| {
            let second = second.clone();
            async move {
                if stream.number > 0 {
                    second.send(())?;
                    return stream.serve(200).await;
                }
                stream.data().await?;
                // Dropped with its request unread: RST_STREAM with NO_ERROR follows.
                stream.answer(503)
            }
        })
        .await?;
        let (parts, body) = fed();
        feed(&parts, 0..produced)?;
        let call = tokio::spawn(call(Http2, steady(), put(address, body)));
        timeout(PATIENCE, began.recv()).await?.context("there was no second attempt")?;
        feed(&parts, produced..FRAMES)?;
        drop(parts);
        assert_eq!(told(&call.await??), (vec![503, 200], None));
        assert!(got(&mut notes).await?.body == whole());
    }
    Ok(())
}

// BR-04
#[tokio::test]
async fn an_answer_without_a_reset_leaves_the_body_to_the_first_attempt() -> Test {
    let script = |mut stream: Stream| async move {
        if stream.number > 0 {
            return stream.serve(200).await;
        }
        let first = stream.data().await?.unwrap_or_default();
        stream.answer(503)?;
        stream.read(first.to_vec()).await
    };
    // It is all there, and the upload is over before the retry is due.
    let (address, mut notes) = serve(script).await?;
    let response = call(Http2, steady(), put(address, streamed())).await?;
    assert_eq!(told(&response), (vec![503, 200], None));
    assert!(got(&mut notes).await?.body == whole() && got(&mut notes).await?.body == whole());
    // It is still being produced.
    let (address, mut notes) = serve(script).await?;
    let (parts, body) = fed();
    feed(&parts, 0..1)?;
    let response = call(Http2, steady(), put(address, body)).await?;
    assert_eq!(told(&response), (vec![503], Some(StopReason::BodyNotReplayable)));
    feed(&parts, 1..FRAMES)?;
    drop(parts);
    assert!(got(&mut notes).await?.body == whole(), "the upload goes on undisturbed");
    Ok(())
}

/// linkerd/linkerd2#15649: the first chunk came twice.
#[tokio::test]
async fn a_stream_refused_before_its_first_frame_is_sent_once_in_all() -> Test {
    let (second, mut began) = mpsc::unbounded_channel();
    let (address, mut notes) = serve(move |mut stream| {
        let second = second.clone();
        async move {
            if stream.number > 0 {
                second.send(())?;
                return stream.serve(200).await;
            }
            stream.respond.send_reset(Reason::REFUSED_STREAM);
            Ok(())
        }
    })
    .await?;
    let (parts, body) = fed();
    let call = tokio::spawn(call(Http2, steady(), put(address, body)));
    timeout(PATIENCE, began.recv()).await?.context("there was no second attempt")?;
    feed(&parts, 0..FRAMES)?;
    drop(parts);
    assert_eq!(told(&call.await??), (vec![0, 200], None));
    assert!(got(&mut notes).await?.body == whole());
    Ok(())
}

// BR-01
#[tokio::test]
async fn an_attempt_that_times_out_amid_its_upload_is_followed_by_a_whole_one() -> Test {
    let (second, mut began) = mpsc::unbounded_channel();
    let (address, mut notes) = serve(move |mut stream| {
        let second = second.clone();
        async move {
            if stream.number > 0 {
                second.send(())?;
                return stream.serve(200).await;
            }
            while stream.data().await?.is_some() {}
            Ok(())
        }
    })
    .await?;
    let (parts, body) = fed();
    feed(&parts, 0..40)?;
    let policy = steady().with_attempt_timeout(Duration::from_millis(500));
    let call = tokio::spawn(call(Http2, policy, put(address, body)));
    timeout(PATIENCE, began.recv()).await?.context("there was no second attempt")?;
    feed(&parts, 40..FRAMES)?;
    drop(parts);
    assert_eq!(told(&call.await??), (vec![0, 200], None));
    assert!(got(&mut notes).await?.body == whole());
    Ok(())
}

#[tokio::test]
async fn a_stream_that_breaks_is_not_sent_again() -> Test {
    let (address, mut notes) = serve(|mut stream| async move { stream.serve(200).await }).await?;
    let (parts, body) = fed();
    parts.send(Ok(http_body::Frame::data(frame(0))))?;
    parts.send(Err(io::Error::other("torn")))?;
    let call = stack(Http2, steady())?.oneshot(put(address, body));
    let error = timeout(PATIENCE, call).await?.unwrap_err();
    assert_eq!((error.fault(), error.attempts()), (Fault::Permanent, 1), "{error:?}");
    let reason = error.report().and_then(abate::Report::stop_reason);
    assert_eq!(reason, Some(StopReason::NotRetryable));
    assert!(notes.try_recv().is_err());
    Ok(())
}
