use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use http::{Response, StatusCode};
use tower::Service;

use super::client::{Call, request};
use super::scenario::Path;

/// Makes calls of one scenario, whatever the type of the service.
pub(super) trait Caller: Send {
    /// Makes so many calls, and tells how many were answered with a 200.
    fn call(&mut self, times: u32) -> u32;

    /// One for another thread, over a clone of the same service.
    fn another(&self) -> Box<dyn Caller>;

    /// What a call's future takes, in bytes.
    fn future_size(&mut self) -> usize;
}

pub(super) struct Calls<S> {
    pub(super) service: S,
    pub(super) path: Path,
}

impl<S, R> Caller for Calls<S>
where
    S: Service<Call, Response = Response<R>> + Clone + Send + 'static,
{
    fn call(&mut self, times: u32) -> u32 {
        let mut cx = Context::from_waker(Waker::noop());
        let mut succeeded = 0;
        for _ in 0..times {
            let request = request(self.path);
            while self.service.poll_ready(&mut cx).is_pending() {}
            let mut call = pin!(self.service.call(request));
            loop {
                if let Poll::Ready(result) = call.as_mut().poll(&mut cx) {
                    let answered = black_box(&result).as_ref();
                    succeeded += u32::from(answered.is_ok_and(|it| it.status() == StatusCode::OK));
                    break;
                }
            }
        }
        succeeded
    }

    fn another(&self) -> Box<dyn Caller> {
        Box::new(Self { service: self.service.clone(), path: self.path })
    }

    fn future_size(&mut self) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        while self.service.poll_ready(&mut cx).is_pending() {}
        size_of_val(&self.service.call(request(self.path)))
    }
}
