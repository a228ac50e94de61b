use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;

use super::BufferedBody;
use super::reading::Reading;
use crate::error::BoxError;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Clean,
    Trailers,
    Break,
}

/// Plays frames, of which `None` is a pause, and then its end. Its data is not `Bytes`.
#[derive(Debug, Clone)]
struct Played {
    frames: VecDeque<Option<Vec<u8>>>,
    end: Option<End>,
    /// What it says of its size, true or not.
    stated: Option<u64>,
    exact: bool,
}

impl Played {
    fn new(frames: &[Option<Vec<u8>>], end: End) -> Self {
        let frames = frames.iter().cloned().collect();
        Self { frames, end: Some(end), stated: None, exact: false }
    }

    fn left(&self) -> u64 {
        self.frames.iter().flatten().map(|data| data.len() as u64).sum()
    }
}

impl Body for Played {
    type Data = VecDeque<u8>;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<VecDeque<u8>>>>> {
        match self.frames.pop_front() {
            Some(Some(data)) => Poll::Ready(Some(Ok(Frame::data(data.into())))),
            Some(None) => Poll::Pending,
            None => Poll::Ready(match self.end.take() {
                Some(End::Break) => Some(Err(io::ErrorKind::ConnectionReset.into())),
                Some(End::Trailers) => Some(Ok(Frame::trailers(trailers()))),
                Some(End::Clean) | None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && matches!(self.end, None | Some(End::Clean))
    }

    fn size_hint(&self) -> SizeHint {
        match self.stated {
            Some(stated) => SizeHint::with_exact(stated),
            None if self.exact => SizeHint::with_exact(self.left()),
            None => SizeHint::default(),
        }
    }
}

fn trailers() -> HeaderMap {
    [(http::header::ETAG, HeaderValue::from_static("x"))].into_iter().collect()
}

/// Polls through all pauses.
fn read_ahead(body: Played, cap: usize) -> Result<BufferedBody<Played>, BoxError> {
    let mut reading = Reading::new(body, cap);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(read) = reading.poll(&mut cx) {
            return read;
        }
    }
    Err("it does not end".into())
}

/// All that a body yields, of which `left` is its data; checks what it says of itself on the way.
fn read_out<B>(mut body: B, mut left: u64) -> (Vec<Bytes>, Option<HeaderMap>, bool)
where
    B: Body + Unpin,
{
    let (mut data, mut trailers) = (Vec::new(), None);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let hint = body.size_hint();
        let bounds = hint.lower()..=hint.upper().unwrap_or(u64::MAX);
        assert!(bounds.contains(&left), "says {bounds:?} of {left}");
        assert!(!body.is_end_stream() || left == 0, "at its end with {left} left");
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Pending => {}
            Poll::Ready(None) => return (data, trailers, false),
            Poll::Ready(Some(Err(_))) => return (data, trailers, true),
            Poll::Ready(Some(Ok(frame))) => {
                assert!(trailers.is_none(), "trailers are the last");
                match frame.into_data() {
                    Ok(mut more) => {
                        left -= more.remaining() as u64;
                        data.push(more.copy_to_bytes(more.remaining()));
                    }
                    Err(other) => trailers = other.into_trailers().ok(),
                }
            }
        }
    }
}

fn frames() -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    let data = proptest::collection::vec(any::<u8>(), 0..20);
    proptest::collection::vec(prop_oneof![4 => data.prop_map(Some), 1 => Just(None)], 0..8)
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Clean), Just(End::Trailers), Just(End::Break)]
}

proptest! {
    // BR-10
    #[test]
    fn nothing_is_lost_or_moved_whatever_the_cap(
        frames in frames(),
        end in end(),
        cap in 0_usize..100,
        exact in any::<bool>(),
    ) {
        let mut below = Played::new(&frames, end);
        below.exact = exact;
        let (size, fits) = (below.left(), below.left() <= cap as u64);
        let all: Vec<_> = frames.iter().flatten().flatten().copied().collect();
        match read_ahead(below, cap) {
            Err(_) => prop_assert!(fits && end == End::Break),
            Ok(body) => {
                prop_assert!(!fits || end != End::Break);
                if fits {
                    let known = (end == End::Clean).then_some(size);
                    prop_assert_eq!(body.size_hint().exact(), known);
                }
                let (data, read_trailers, broke) = read_out(body, size);
                prop_assert!(!fits || data.len() <= 1, "it is one piece");
                prop_assert_eq!(data.concat(), all);
                prop_assert_eq!(read_trailers, (end == End::Trailers).then(trailers));
                prop_assert_eq!(broke, end == End::Break);
            }
        }
    }
}

#[test]
fn a_body_that_ends_before_its_stated_size_has_broken_off() {
    for end in [End::Clean, End::Trailers] {
        for (stated, frames) in [(1, vec![]), (9, vec![Some(vec![7; 4]), Some(vec![7; 4])])] {
            let mut below = Played::new(&frames, end);
            below.stated = Some(stated);
            let error = read_ahead(below.clone(), 100).unwrap_err();
            let kind = error.downcast_ref().map(io::Error::kind);
            assert_eq!(kind, Some(io::ErrorKind::UnexpectedEof));
            below.stated = Some(stated - 1);
            assert!(read_ahead(below, 100).is_ok(), "and one that has more has not");
        }
    }
}

#[test]
fn one_frame_is_handed_on_and_not_copied() {
    let data = Bytes::from(vec![7; 1_000]);
    let mut reading = Reading::new(Full::new(data.clone()), 1_000);
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok(body)) = reading.poll(&mut cx) else { panic!("it is there") };
    let (frames, ..) = read_out(body, 1_000);
    assert_eq!(frames.iter().map(|it| it.as_ptr()).collect::<Vec<_>>(), [data.as_ptr()]);
    assert!(reading.poll(&mut cx).is_pending(), "there is nothing more");
}

#[test]
fn frames_are_joined_so_that_a_thousand_take_no_more_than_what_is_in_them() {
    let bytes: Vec<_> = (0..200_u8).map(|byte| Some(vec![byte])).collect();
    let body = read_ahead(Played::new(&bytes, End::Clean), 200).unwrap();
    let (frames, ..) = read_out(body, 200);
    assert_eq!(frames.len(), 1);
}

#[test]
fn a_default_body_is_that_of_the_body_within() {
    assert_eq!(read_out(BufferedBody::<Full<Bytes>>::default(), 0), (vec![], None, false));
}

#[test]
fn it_goes_where_the_body_within_goes_and_tells_nothing_of_what_is_in_it() {
    fn goes<T: Send + Sync>() {}
    goes::<BufferedBody<Full<Bytes>>>();
    fn is_sent<T: Send>() {}
    is_sent::<BufferedBody<UnsyncBoxBody<Bytes, ()>>>();
    let secret = BufferedBody::<Full<Bytes>>::whole(Bytes::from_static(b"hunter2"), None);
    assert!(!format!("{secret:?}").contains("hunter2"));
    assert!(secret.boxed_unsync().size_hint().exact() == Some(7));
}
