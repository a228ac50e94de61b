//! A stream, and what was read of it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

/// The most of a stream that is recorded. Most requests are shorter, a thousand such calls at once
/// hold 64 MiB at the most, and what is longer takes so long to send that another attempt is rarely
/// in time. linkerd's proxy draws the line there as well.
pub(super) const LONGEST_RECORDED: usize = 64 * 1024;

/// A stream that is read by one after the other: each first gets what those before have read, and
/// then what is left.
///
/// What is read is copied, since a share of it could keep any amount of memory: a frame may be a
/// few bytes of a large buffer.
pub(super) struct Reel<B: Body> {
    /// A frame that was looked at before anyone read.
    first: Option<Result<Frame<Bytes>, B::Error>>,
    source: B,
    /// Whether the source has said that it has no more. Not every source likes to be asked twice.
    ended: bool,
    /// What the source said of its length before it was read: all readers are to be told the same,
    /// as their requests are framed by it.
    length: SizeHint,
    /// `None` once there is no complete one.
    record: Option<Record>,
}

/// All that was read so far.
#[derive(Default)]
struct Record {
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// How much of it the present reader has had.
    data_read: usize,
    trailers_read: bool,
}

impl<B: Body<Data = Bytes> + Unpin> Reel<B> {
    /// Nothing of `source` was read, but perhaps its `first` frame looked at; of its `length` it said
    /// that before.
    pub(super) fn new(
        length: SizeHint,
        first: Option<Result<Frame<Bytes>, B::Error>>,
        source: B,
    ) -> Self {
        let record = (length.lower() <= LONGEST_RECORDED as u64).then(Record::default);
        Self { first, source, ended: false, length, record }
    }

    /// Whether what was read can be read again.
    pub(super) const fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Begins again, for another reader.
    pub(super) fn rewind(&mut self) {
        if let Some(record) = &mut self.record {
            (record.data_read, record.trailers_read) = (0, false);
        }
    }

    /// The next frame for the present reader; it is recorded as long as that is `wanted`.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        wanted: bool,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(frame) = self.record.as_mut().and_then(Record::play) {
            return Poll::Ready(Some(Ok(frame)));
        }
        let frame = match self.first.take() {
            None if self.ended => None,
            None => ready!(Pin::new(&mut self.source).poll_frame(cx)),
            first => first,
        };
        let recorded = match &frame {
            None => {
                self.ended = true;
                return Poll::Ready(None);
            }
            Some(Ok(frame)) if wanted => {
                let length = self.length.exact().unwrap_or(0);
                self.record.as_mut().is_some_and(|record| record.add(frame, length))
            }
            Some(_) => false,
        };
        if !recorded {
            self.record = None;
        }
        Poll::Ready(frame)
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let read_on = self.first.is_none() && !self.is_playing();
        read_on && (self.ended || self.source.is_end_stream())
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        if self.first.is_none() && !self.is_playing() {
            return self.source.size_hint();
        }
        let read = self.record.as_ref().map_or(0, |record| record.data_read as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = self.length.upper() {
            hint.set_upper(upper.saturating_sub(read));
        }
        hint.set_lower(self.length.lower().saturating_sub(read));
        hint
    }

    /// Whether the present reader is still to get what others have read.
    fn is_playing(&self) -> bool {
        self.record.as_ref().is_some_and(Record::is_playing)
    }
}

impl Record {
    fn is_playing(&self) -> bool {
        self.data_read < self.data.len() || (self.trailers.is_some() && !self.trailers_read)
    }

    /// What comes next of that which was read before.
    fn play(&mut self) -> Option<Frame<Bytes>> {
        if self.data_read < self.data.len() {
            let data = Bytes::copy_from_slice(&self.data[self.data_read..]);
            self.data_read = self.data.len();
            return Some(Frame::data(data));
        }
        if self.trailers_read {
            return None;
        }
        let trailers = self.trailers.clone()?;
        self.trailers_read = true;
        Some(Frame::trailers(trailers))
    }

    /// Adds what the present reader gets, of `length` in all if that is known; false where it would
    /// be too much, or could not be told apart later.
    fn add(&mut self, frame: &Frame<Bytes>, length: u64) -> bool {
        let room = LONGEST_RECORDED - self.data.len();
        // Trailers come last, and once.
        if self.trailers.is_some() {
            return false;
        }
        if let Some(data) = frame.data_ref().filter(|data| data.len() <= room) {
            let left =
                (length.min(LONGEST_RECORDED as u64) as usize).saturating_sub(self.data.len());
            self.data.reserve(left.max(data.len()));
            self.data.extend_from_slice(data);
            self.data_read = self.data.len();
            return true;
        }
        if let Some(trailers) = frame.trailers_ref().filter(|trailers| bytes(trailers) <= room) {
            self.trailers = Some(trailers.clone());
            self.trailers_read = true;
            return true;
        }
        false
    }
}

fn bytes(trailers: &HeaderMap) -> usize {
    trailers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}
