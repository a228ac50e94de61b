//! A server of gRPC that sends the frames it is told to, and a codec that leaves messages as they are.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, BufMut, Bytes};
use futures_util::stream::poll_fn;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

pub(crate) type Fields = &'static [(&'static str, &'static str)];

pub(crate) fn fields(fields: Fields) -> HeaderMap {
    let field = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    fields.iter().map(field).collect()
}

/// What one call is answered with.
pub(crate) struct Reply {
    status: u16,
    head: Fields,
    frames: UnboundedReceiver<Frame<Bytes>>,
}

impl Reply {
    /// A head, and these frames, and the end.
    pub(crate) fn of<const N: usize>(head: Fields, frames: [Frame<Bytes>; N]) -> Self {
        let (reply, sender) = Self::live(head);
        let _ = frames.into_iter().try_for_each(|frame| sender.send(frame));
        reply
    }

    /// The message, and a good end.
    pub(crate) fn ok(message: &[u8]) -> Self {
        Self::of(&[], [data(message), trailers(&[("grpc-status", "0")])])
    }

    /// A head at once, and frames as they are sent.
    pub(crate) fn live(head: Fields) -> (Self, UnboundedSender<Frame<Bytes>>) {
        let (sender, frames) = unbounded_channel();
        (Self { status: 200, head, frames }, sender)
    }

    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    fn into_response(mut self) -> Response<BoxBody<Bytes, Infallible>> {
        let body = match self.frames.is_closed() && self.frames.is_empty() {
            true => Empty::new().boxed(), // or the head would not be the end
            false => {
                let frames = poll_fn(move |cx| self.frames.poll_recv(cx).map(|it| it.map(Ok)));
                BodyExt::boxed(StreamBody::new(frames))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = http::StatusCode::from_u16(self.status).unwrap_or_default();
        *response.headers_mut() = fields(self.head);
        let kind = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
        response
    }
}

/// A message, framed as gRPC frames it.
pub(crate) fn data(message: &[u8]) -> Frame<Bytes> {
    let length = u32::try_from(message.len()).unwrap_or_default().to_be_bytes();
    Frame::data([&[0], &length[..], message].concat().into())
}

pub(crate) fn trailers(told: Fields) -> Frame<Bytes> {
    Frame::trailers(fields(told))
}

/// What arrived: the body of each call, as far as it was read.
#[derive(Clone, Default)]
pub(crate) struct Arrived(Arc<Mutex<Vec<Vec<u8>>>>);

impl Arrived {
    fn enter(&self) -> usize {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Vec::new());
        calls.len() - 1
    }

    fn note(&self, call: usize, data: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[call].extend_from_slice(data);
    }

    pub(crate) fn calls(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers call `n`, from 0, with `reply(n)`, when its head is there if `early`, else when all of it is.
pub(crate) async fn serve(
    early: bool,
    reply: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> io::Result<(SocketAddr, Arrived)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let (address, arrived) = (listener.local_addr()?, Arrived::default());
    let (reply, noted) = (Arc::new(reply), arrived.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (reply, arrived) = (Arc::clone(&reply), noted.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (reply, arrived) = (Arc::clone(&reply), arrived.clone());
                async move {
                    let call = arrived.enter();
                    let read = async move {
                        let mut body = request.into_body();
                        while let Some(Ok(frame)) = body.frame().await {
                            arrived.note(call, frame.data_ref().map_or(&[], |data| data));
                        }
                    };
                    if early {
                        tokio::spawn(read);
                    } else {
                        read.await;
                    }
                    Ok::<_, Infallible>(reply(call).into_response())
                }
            });
            let connection = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok((address, arrived))
}

/// Messages as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
