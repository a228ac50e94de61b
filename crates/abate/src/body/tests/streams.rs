//! Streams that are read by one attempt after the other.

use super::*;
use crate::body::Tape;
use crate::body::reel::LONGEST_RECORDED;

/// No two stretches of it are the same, so that nothing can be lost, doubled or moved unseen.
static TEXT: [u8; 70_000] = {
    let mut text = [0; 70_000];
    let mut at = 0;
    while at < text.len() {
        text[at] = (at / 251 + at % 251) as u8;
        at += 1;
    }
    text
};

/// A frame as it was read, with data in a row put together.
#[derive(Debug, PartialEq, Clone)]
enum Read {
    Data(Vec<u8>),
    Trailers,
    Error,
    End,
}

/// Reads with at most `polls` polls, and looks at each whether the body says more of the rest than
/// it can keep.
#[track_caller]
fn read(body: &mut ReplayBody<Steps>, polls: usize) -> Vec<Read> {
    let (mut read, mut said) = (Vec::new(), Vec::new());
    let mut cx = Context::from_waker(Waker::noop());
    let mut length = 0;
    for _ in 0..polls {
        said.push((length, body.size_hint(), body.is_end_stream()));
        let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(&mut cx) else { continue };
        match frame {
            None => {
                read.push(Read::End);
                break;
            }
            Some(Err(_)) => {
                read.push(Read::Error);
                break;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Err(other) => {
                    assert_eq!(other.into_trailers().ok(), Some(trailers()));
                    read.push(Read::Trailers);
                }
                Ok(data) => {
                    length += data.len();
                    match read.last_mut() {
                        Some(Read::Data(last)) => last.extend_from_slice(&data),
                        last if data.is_empty() && last != Some(&mut Read::Trailers) => {}
                        _ => read.push(Read::Data(data.to_vec())),
                    }
                }
            },
        }
    }
    if read.last() == Some(&Read::End) {
        for (before, hint, ended) in said {
            let bounds = hint.lower()..=hint.upper().unwrap_or(u64::MAX);
            let left = (length - before) as u64;
            assert!(bounds.contains(&left), "{bounds:?} said of {left}");
            assert!(!ended || left == 0, "more came after the end");
        }
    }
    read
}

#[track_caller]
fn assert_begins_with(whole: &[Read], part: &[Read]) {
    let Some((last, before)) = part.split_last() else { return };
    assert_eq!(whole.get(..before.len()), Some(before));
    match (&whole[before.len()], last) {
        (Read::Data(whole), Read::Data(part)) => assert!(whole.starts_with(part)),
        (whole, last) => assert_eq!(whole, last),
    }
}

/// What who reads these steps from beginning to end reads.
fn all_of(steps: &[Step]) -> Vec<Read> {
    let mut body = ReplayBody::once(Steps::streamed(steps));
    read(&mut body, usize::MAX)
}

/// What takes up room on a tape.
fn recorded(part: &[Read]) -> usize {
    let length = |it: &Read| match it {
        Read::Data(data) => data.len(),
        Read::Trailers => "etag".len() + "x".len(),
        Read::Error | Read::End => 0,
    };
    part.iter().map(length).sum()
}

/// No client sends such a thing.
fn goes_on_after_trailers(part: &[Read]) -> bool {
    part.iter().skip_while(|it| **it != Read::Trailers).skip(1).any(|it| *it != Read::End)
}

fn taped(steps: Steps) -> (ReplayBody<Steps>, Tape<Steps>) {
    let body = ReplayBody::new(steps);
    let tape = body.tape().unwrap();
    (body, tape)
}

fn chunk() -> impl Strategy<Value = Step> {
    let length = prop_oneof![8 => 0_usize..40, 1 => Just(30_000), 1 => Just(LONGEST_RECORDED)];
    let data = (0_usize..4_000, length).prop_map(|(at, length)| Step::Data(&TEXT[at..][..length]));
    prop_oneof![12 => data, 4 => Just(Step::Pending), 1 => Just(Step::Error), 1 => Just(Step::Trailers)]
}

proptest! {
    // BR-01
    #[test]
    fn attempts_are_the_same_to_the_byte_or_are_not_made(
        steps in proptest::collection::vec(chunk(), 0..10),
        trailers in any::<bool>(),
        exact in any::<bool>(),
        polls in proptest::collection::vec(prop_oneof![0_usize..12, Just(usize::MAX)], 1..5),
    ) {
        let mut steps = steps;
        steps.extend(trailers.then_some(Step::Trailers));
        let whole = all_of(&steps);
        let source = if exact { Steps::exact(&steps) } else { Steps::streamed(&steps) };
        let mut body = ReplayBody::new(source);
        let tape = body.tape();
        let short = body.size_hint().lower() <= LONGEST_RECORDED as u64;
        prop_assert_eq!(body.data().is_some() || tape.is_some(), body.data().is_some() || short);
        let mut longest = 0;
        for polls in polls {
            let part = read(&mut body, polls);
            assert_begins_with(&whole, &part);
            longest = longest.max(recorded(&part));
            drop(body);
            let Some(tape) = &tape else { return Ok(()) };
            // Never for no reason, and never for all that.
            let torn = part.contains(&Read::Error) || goes_on_after_trailers(&part);
            let again = ReplayBody::taped(tape);
            prop_assert_eq!(again.is_some(), longest <= LONGEST_RECORDED && !torn);
            let Some(again) = again else { return Ok(()) };
            body = again;
            if exact {
                let length = bytes(steps.iter());
                prop_assert_eq!(body.size_hint().exact(), Some(length), "framed as the first");
            }
        }
    }
}

#[test]
fn what_was_read_comes_first_and_then_the_rest_whenever_the_first_reader_goes() {
    let steps = [Step::Data(b"one"), Step::Pending, Step::Data(b"two"), Step::Trailers];
    let whole = [Read::Data(b"onetwo".to_vec()), Read::Trailers, Read::End];
    for polls in 0..=6 {
        let (mut body, tape) = taped(Steps::streamed(&steps));
        read(&mut body, polls);
        drop(body);
        for _ in 0..3 {
            let mut again = ReplayBody::taped(&tape).unwrap();
            assert_eq!(read(&mut again, usize::MAX), whole, "after {polls} polls");
        }
    }
}

#[test]
fn a_repeat_that_is_itself_cut_short_takes_nothing_from_the_next() {
    let (mut body, tape) = taped(Steps::streamed(&[Step::Data(b"one"), Step::Data(b"two")]));
    read(&mut body, 1);
    drop(body);
    for polls in [0, 1, 2] {
        read(&mut ReplayBody::taped(&tape).unwrap(), polls);
    }
    let whole = [Read::Data(b"onetwo".to_vec()), Read::End];
    assert_eq!(read(&mut ReplayBody::taped(&tape).unwrap(), usize::MAX), whole);
}

// BR-04
#[test]
fn there_are_never_two_readers_and_who_waits_is_woken_when_one_goes() {
    let (body, tape) = taped(Steps::streamed(&[Step::Data(b"one")]));
    let counted = Arc::<Counted>::default();
    let waker = Waker::from(Arc::clone(&counted));
    let mut cx = Context::from_waker(&waker);
    assert!(ReplayBody::taped(&tape).is_none());
    assert!(tape.poll_free(&mut cx).is_pending());
    assert_eq!(counted.0.load(Relaxed), 0);
    drop(body);
    assert_eq!(counted.0.load(Relaxed), 1);
    assert!(tape.poll_free(&mut cx).is_ready());
    let again = ReplayBody::taped(&tape).unwrap();
    assert!(ReplayBody::taped(&tape).is_none());
    drop(again);
    assert!(ReplayBody::taped(&tape).is_some());
}

#[test]
fn a_stream_over_the_limit_is_read_to_its_end_and_not_again() {
    let part = &TEXT[..LONGEST_RECORDED];
    for (steps, again) in [
        (vec![Step::Data(part)], true),
        (vec![Step::Data(part), Step::Data(b"x")], false),
        (vec![Step::Data(&part[1..]), Step::Trailers], false),
        (vec![Step::Data(&TEXT[..LONGEST_RECORDED + 1])], false),
    ] {
        let (mut body, tape) = taped(Steps::streamed(&steps));
        assert_eq!(read(&mut body, usize::MAX), all_of(&steps));
        assert_eq!(tape.is_recorded(), again);
        drop(body);
        assert_eq!(ReplayBody::taped(&tape).is_some(), again);
    }
}

#[test]
fn a_stream_that_says_it_is_over_the_limit_is_not_recorded_at_all() {
    let mut stream = Steps::exact(&[Step::Pending, Step::Data(&TEXT), Step::Data(b"x")]);
    assert!(ReplayBody::new(&mut stream).tape().is_none());
    assert!(ReplayBody::new(stream).tape().is_none(), "nor when its first frame is there");
}

#[test]
fn nothing_is_recorded_for_a_call_that_is_over() {
    let (mut body, tape) = taped(Steps::streamed(&[Step::Data(b"one"), Step::Data(b"two")]));
    read(&mut body, 1);
    drop(tape);
    assert_eq!(read(&mut body, usize::MAX), [Read::Data(b"two".to_vec()), Read::End]);
    assert!(body.tape().is_none());
}

struct Panics;

impl Body for Panics {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        panic!("as a body might")
    }
}

#[test]
fn a_stream_that_panicked_is_not_read_again() {
    let mut body = ReplayBody::new(Panics);
    let tape = body.tape().unwrap();
    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut body)));
    assert!(polled.is_err());
    drop(body);
    assert!(ReplayBody::taped(&tape).is_none());
}

#[test]
fn a_whole_body_can_be_cloned_and_a_stream_cannot() {
    let data = Bytes::from(vec![7; 100_000]);
    let whole = ReplayBody::new(Full::new(data.clone()));
    let clone = whole.try_clone().unwrap();
    assert_eq!(clone.data().flatten().map(|it| it.as_ptr()), Some(data.as_ptr()), "no copy");
    assert!(ReplayBody::new(Empty::new()).try_clone().is_some());
    assert!(ReplayBody::once(Full::new(data)).try_clone().is_none(), "it was not looked at");
    assert!(ReplayBody::new(Steps::streamed(&[Step::Data(b"one")])).try_clone().is_none());
    let begun = [Step::Data(b"one"), Step::Data(b"two")];
    assert!(ReplayBody::new(Steps::exact(&begun)).try_clone().is_none());
}
