use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::answer::{Answer, AnswerBody};
use super::future::ResponseFuture;
use super::probe::Reserved;
use super::record::Record;
use crate::error::BoxError;
use crate::fault::Known;

/// A client whose dependency answers by a script, and which tells what was asked.
///
/// It takes requests with any body, reads that to its end, and then gives the next answer; the last
/// one is given again and again. Clones play one script and keep one record: hand one to the code
/// that is tested, and ask the other.
///
/// Its error is [`fault::Known`](Known), so the layers above see the fault that the script wants.
///
/// # Panics
///
/// Its `call` does, when it was not ready (as a [`Probe`](super::Probe)'s does), and when there is
/// no answer at all in the script: that is for what must not be called.
///
/// # Examples
///
/// A breaker that opens, and closes again once the dependency is back:
///
/// ```
/// use abate::test::{Answer, Dependency};
/// use abate::{BreakerState, ErrorKind, Policy, Stack};
/// use std::time::Duration;
/// use tower::{Layer, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tower::BoxError> {
/// # let request = || http::Request::get("http://stock.internal/").body(String::new());
/// let stock = Dependency::answering([Answer::status(503)]);
/// let stack = Stack::new(Policy::default()).with_seed(1);
/// let service = stack.layer(stock.clone());
/// while stack.breaker().state() == BreakerState::Closed {
///     service.clone().oneshot(request()?).await?;
///     tokio::time::sleep(Duration::from_millis(100)).await;
/// }
///
/// stock.set_answers([]);
/// let error = service.clone().oneshot(request()?).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::BreakerOpen);
///
/// stock.set_answers([Answer::status(200)]);
/// tokio::time::sleep(Duration::from_secs(2)).await;
/// for _ in 0..3 {
///     assert_eq!(service.clone().oneshot(request()?).await?.status(), 200);
/// }
/// assert_eq!(stack.breaker().state(), BreakerState::Closed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Dependency {
    record: Record,
    reserved: Reserved,
}

impl Dependency {
    /// Gives the n-th of `answers` to the n-th request, and the last one to all after it.
    #[must_use]
    pub fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let record = Record::new(answers.into_iter().collect());
        Self { record, reserved: Reserved::default() }
    }

    /// Gives these answers from now on, the first of them to the next request.
    pub fn set_answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.record.set_answers(answers.into_iter().collect());
    }

    /// How often it was called, by all its clones.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.record.calls()
    }

    /// The requests in the order in which they came, with their extensions. The body of one that was
    /// given up before it was read to its end is empty.
    #[must_use]
    pub fn requests(&self) -> Vec<Request<Bytes>> {
        self.record.requests()
    }

    /// The number of each of these requests among the attempts of its call, from 1, as the retry
    /// layer above counts it (see [`Attempt`](crate::Attempt)); 1 where there is none.
    #[must_use]
    pub fn attempts(&self) -> Vec<u32> {
        self.record.attempts()
    }
}

impl<B> Service<Request<B>> for Dependency
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = Known;
    type Future = ResponseFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Known>> {
        self.reserved.reserve();
        Poll::Ready(Ok(()))
    }

    #[track_caller]
    fn call(&mut self, request: Request<B>) -> ResponseFuture<B> {
        self.reserved.spend();
        let (head, body) = request.into_parts();
        let (place, answer) = self.record.enter(head);
        assert!(answer.is_some(), "called, with no answer in the script");
        ResponseFuture::new(body, self.record.clone(), place, answer)
    }
}
