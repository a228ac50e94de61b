mod streams;

use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use abate_core::striped::Striped;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;

use super::{Answer, Carry, Merge, Relay, ReplayBody, ResponseBody, Slot, Wrap};
use crate::error::BoxError;
use crate::permits::Permits;

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Data(&'static [u8]),
    Trailers,
    Error,
    Pending,
}

/// Plays its steps; it is honest about its size, exactly or within bounds, and about its end.
#[derive(Debug, Default)]
struct Steps {
    steps: VecDeque<Step>,
    exact: bool,
    ended: bool,
    polls: usize,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Steps {
    fn exact(steps: &[Step]) -> Self {
        Self { steps: steps.iter().cloned().collect(), exact: true, ..Self::default() }
    }

    fn streamed(steps: &[Step]) -> Self {
        Self { exact: false, ..Self::exact(steps) }
    }

    fn bytes(&self) -> u64 {
        bytes(self.steps.iter())
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.polls += 1;
        assert!(!self.ended, "asked again after its end");
        Poll::Ready(match self.steps.pop_front() {
            None => {
                self.ended = true;
                None
            }
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data)))),
            Some(Step::Trailers) => Some(Ok(Frame::trailers(trailers()))),
            Some(Step::Error) => Some(Err("torn")),
            Some(Step::Pending) => {
                *self.waker.lock().unwrap() = Some(cx.waker().clone());
                return Poll::Pending;
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        if self.exact {
            return SizeHint::with_exact(self.bytes());
        }
        let mut hint = SizeHint::new();
        hint.set_lower(self.bytes() / 2);
        hint.set_upper(self.bytes() + 7);
        hint
    }
}

fn trailers() -> HeaderMap {
    [(http::header::ETAG, HeaderValue::from_static("x"))].into_iter().collect()
}

fn bytes<'a>(steps: impl Iterator<Item = &'a Step>) -> u64 {
    let lengths = steps.map(|step| match step {
        Step::Data(data) => data.len() as u64,
        _ => 0,
    });
    lengths.sum()
}

/// Polls once, with a waker that does nothing.
fn poll<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Poll<Option<Step>> {
    let mut cx = Context::from_waker(Waker::noop());
    Pin::new(body).poll_frame(&mut cx).map(|frame| {
        let frame = frame?.map_err(drop);
        Some(match frame.map(Frame::into_data) {
            Ok(Ok(data)) => Step::Data(Box::leak(data.to_vec().into_boxed_slice())),
            Ok(Err(other)) => {
                assert_eq!(other.into_trailers().ok(), Some(trailers()));
                Step::Trailers
            }
            Err(()) => Step::Error,
        })
    })
}

/// Reads `body`, which is to yield `steps`, and checks at each of them what it says of the rest.
#[track_caller]
fn assert_plays<B: Body<Data = Bytes> + Unpin>(mut body: B, steps: &[Step]) {
    let mut rest: VecDeque<_> = steps.iter().cloned().collect();
    loop {
        let (left, hint) = (bytes(rest.iter()), body.size_hint());
        let bounds = hint.lower()..=hint.upper().unwrap_or(u64::MAX);
        assert!(bounds.contains(&left), "says {bounds:?} of {rest:?}");
        assert_eq!(body.is_end_stream(), rest.is_empty(), "with {rest:?} left");
        match (poll(&mut body), rest.pop_front()) {
            (Poll::Ready(None), None) => return,
            (Poll::Ready(frame), expected) => assert_eq!(frame, expected),
            (Poll::Pending, Some(Step::Pending)) => {}
            (Poll::Pending, expected) => panic!("pending instead of {expected:?}"),
        }
    }
}

#[test]
fn a_whole_body_is_known_and_reads_as_before() {
    let ok = Bytes::from_static(b"all there is");
    let steps = [Step::Data(b"all there is")];
    let replay = ReplayBody::new(Steps::exact(&steps));
    assert_eq!(replay.data(), Some(Some(&ok)));
    assert_eq!(replay.size_hint().exact(), Some(12));
    assert_plays(replay, &steps);
    for replay in [ReplayBody::new(Full::new(ok.clone())), ReplayBody::whole(Some(ok.clone()))] {
        assert_eq!(replay.data(), Some(Some(&ok)));
        assert_plays(replay, &steps);
    }
    let boxed = ReplayBody::new(Full::new(ok.clone()).boxed_unsync());
    assert_eq!(boxed.data(), Some(Some(&ok)));
    assert_plays(boxed, &steps);
    assert_plays(ReplayBody::new(String::from("all there is")), &steps);
}

#[test]
fn a_whole_body_is_the_same_bytes_and_not_a_copy() {
    let data = Bytes::from(vec![7; 100_000]);
    let replay = ReplayBody::new(Full::new(data.clone()));
    assert_eq!(replay.data().flatten().map(|it| it.as_ptr()), Some(data.as_ptr()));
}

#[test]
fn an_empty_body_is_whole() {
    assert_eq!(ReplayBody::new(Empty::new()).data(), Some(None));
    assert_eq!(ReplayBody::new(Full::default()).data(), Some(None));
    assert_eq!(ReplayBody::new(Steps::exact(&[])).data(), Some(None));
    assert_eq!(ReplayBody::new(Steps::streamed(&[])).data(), Some(None), "it is at its end");
    let replay = ReplayBody::new(Empty::new());
    assert_eq!(replay.size_hint().exact(), Some(0));
    assert_plays(replay, &[]);
}

#[test]
fn a_stream_is_not_touched_until_it_is_polled() {
    let steps = [Step::Data(b"one"), Step::Data(b"two"), Step::Trailers];
    let mut stream = Steps::streamed(&steps);
    let replay = ReplayBody::new(&mut stream);
    assert_eq!(replay.data(), None);
    drop(replay);
    assert_eq!(stream.polls, 0);
    assert_plays(ReplayBody::new(stream), &steps);
}

#[test]
fn a_body_that_is_sent_once_is_not_looked_at_at_all() {
    let steps = [Step::Data(b"one")];
    let mut body = Steps::exact(&steps);
    let replay = ReplayBody::once(&mut body);
    assert_eq!(replay.data(), None);
    drop(replay);
    assert_eq!(body.polls, 0);
    assert_plays(ReplayBody::once(body), &steps);
}

#[test]
fn a_known_length_in_several_frames_is_sent_once_and_whole() {
    let steps = [Step::Data(b"one"), Step::Data(b""), Step::Data(b"three")];
    let replay = ReplayBody::new(Steps::exact(&steps));
    assert_eq!(replay.data(), None);
    assert_eq!(replay.size_hint().exact(), Some(8), "a known length stays known");
    assert_plays(replay, &steps);
}

// BR-07
#[test]
fn trailers_come_through_after_data_and_alone() {
    for steps in [&[Step::Data(b"one"), Step::Trailers][..], &[Step::Trailers]] {
        let replay = ReplayBody::new(Steps::exact(steps));
        assert_eq!(replay.data(), None);
        assert!(!replay.is_end_stream());
        assert_plays(replay, steps);
    }
}

// BR-02
#[test]
fn an_error_at_the_first_frame_is_handed_to_whoever_reads() {
    for steps in [&[Step::Error][..], &[Step::Error, Step::Data(b"more")]] {
        let replay = ReplayBody::new(Steps::exact(steps));
        assert_eq!(replay.data(), None);
        assert_plays(replay, steps);
    }
}

#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed); // a count
    }
}

#[test]
fn a_body_that_is_not_ready_yet_wakes_whoever_polls_next() {
    let body = Steps::exact(&[Step::Pending, Step::Pending, Step::Data(b"late")]);
    let waker = Arc::clone(&body.waker);
    let mut replay = ReplayBody::new(body);
    assert_eq!(replay.data(), None);
    assert!(waker.lock().unwrap().is_some(), "it was looked at");
    let counted = Arc::<Counted>::default();
    let real = Waker::from(Arc::clone(&counted));
    assert!(Pin::new(&mut replay).poll_frame(&mut Context::from_waker(&real)).is_pending());
    waker.lock().unwrap().take().unwrap().wake();
    assert_eq!(counted.0.load(Relaxed), 1);
    assert_plays(replay, &[Step::Data(b"late")]);
}

#[test]
fn a_default_body_is_that_of_the_body_within() {
    assert_plays(ReplayBody::<Full<Bytes>>::default(), &[]);
    assert_plays(ReplayBody::<Steps>::default(), &[]);
    assert_plays(ResponseBody::<Full<Bytes>>::default(), &[]);
}

#[test]
fn what_a_body_holds_is_not_in_its_debug_form() {
    let secret = Bytes::from_static(b"hunter2");
    assert!(!format!("{:?}", ReplayBody::new(Full::new(secret))).contains("hunter2"));
}

#[test]
fn bodies_go_where_the_body_within_goes() {
    fn goes<T: Send + Sync>() {}
    goes::<ResponseBody<Full<Bytes>>>();
    goes::<ReplayBody<Full<Bytes>>>();
    fn is_sent<T: Send>() {}
    is_sent::<ResponseBody<http_body_util::combinators::UnsyncBoxBody<Bytes, ()>>>();
    is_sent::<ReplayBody<http_body_util::combinators::UnsyncBoxBody<Bytes, ()>>>();
}

fn step() -> impl Strategy<Value = Step> {
    let data = prop_oneof![Just(&b""[..]), Just(&b"a"[..]), Just(&b"four"[..])];
    prop_oneof![4 => data.prop_map(Step::Data), 1 => Just(Step::Error), 1 => Just(Step::Pending)]
}

proptest! {
    #[test]
    fn any_body_reads_as_it_is(
        steps in proptest::collection::vec(step(), 0..6),
        trailers in any::<bool>(),
        exact in any::<bool>(),
    ) {
        let mut steps = steps;
        steps.extend(trailers.then_some(Step::Trailers));
        let body = || if exact { Steps::exact(&steps) } else { Steps::streamed(&steps) };
        assert_plays(ResponseBody::new(body()), &steps);
        assert_plays(ReplayBody::once(body()), &steps);
        let replay = ReplayBody::new(body());
        // The first look has met the first pause, which the next one then does not.
        let met = exact && steps.first() == Some(&Step::Pending);
        let one = matches!(steps[..], [Step::Data(_)]) && exact;
        prop_assert_eq!(replay.data().is_some(), one || steps.is_empty());
        assert_plays(replay, &steps[usize::from(met)..]);
    }
}

/// A response with this body as `M` hands it on, with a permit to hold.
fn carry<M, B>(body: B, permits: &Striped<Permits>) -> M::Body
where
    M: Carry<Ready<Result<Response<B>, BoxError>>>,
{
    let permit = Permits::try_acquire(permits).unwrap();
    let mut slot = Poll::Pending;
    let mut cx = Context::from_waker(Waker::noop());
    M::poll_into(pin!(ready(Ok(Response::new(body)))), &mut cx, &mut slot);
    let Poll::Ready(Ok(response)) = slot else { panic!("an answer stays one") };
    let mut body = response.into_body();
    if let Some(held) = M::held(&mut body) {
        held.keep_permit(permit);
    }
    body
}

/// An answer of a layer of ours.
struct Ours<B>(Option<Response<B>>);

impl<B> Answer for Ours<B> {
    type Body = B;

    fn poll_into(mut self: Pin<&mut Self>, _: &mut Context<'_>, slot: &mut Slot<B>) {
        *slot = self.0.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)));
    }
}

impl<B> Unpin for Ours<B> {}

#[test]
fn what_a_response_body_holds_goes_with_its_end_its_error_or_itself() {
    let permits = Striped::new(Permits::new(2));
    let held = || permits.in_use();
    let carry = |steps: &[Step]| carry::<Wrap, _>(Steps::streamed(steps), &permits);

    let mut read = carry(&[Step::Data(b"one"), Step::Trailers]);
    assert!(poll(&mut read).is_ready());
    assert_eq!(held(), 1, "trailers are to come");
    assert!(poll(&mut read).is_ready());
    assert_eq!(held(), 0, "the end is known without asking for it");

    let mut broken = carry(&[Step::Error, Step::Data(b"more")]);
    assert!(poll(&mut broken).is_ready());
    assert_eq!(held(), 0);

    let unread = carry(&[Step::Data(b"one")]);
    assert_eq!(held(), 1);
    drop(unread);
    assert_eq!(held(), 0);

    let _ended = carry(&[]);
    assert_eq!(held(), 0, "there is nothing to read, and perhaps nobody who would");
}

#[test]
fn layers_that_are_stacked_hold_in_one_body_what_each_of_them_holds() {
    let permits = Striped::new(Permits::new(2));
    let inner = carry::<Wrap, _>(Steps::streamed(&[Step::Data(b"one")]), &permits);
    assert_eq!(permits.in_use(), 1);
    let mut slot = Poll::Pending;
    let mut cx = Context::from_waker(Waker::noop());
    Merge::poll_into(pin!(Ours(Some(Response::new(inner)))), &mut cx, &mut slot);
    let Poll::Ready(Ok(response)) = slot else { panic!("an answer stays one") };
    let body = response.into_body();
    assert_eq!(permits.in_use(), 1, "what one holds is not lost to the next");
    assert_plays(body, &[Step::Data(b"one")]);
    assert_eq!(permits.in_use(), 0);
}
