//! A call that may have to be held back until a moment.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use abate_core::deadline::Deadline;
use pin_project::pin_project;
use tower_service::Service;

use crate::context::Scope;
use crate::error::{BoxError, Error};
use crate::timer::Timer;

/// The future of a call that goes at once, later, or not at all.
#[pin_project]
pub(crate) struct Delayed<S, R>
where
    S: Service<R>,
{
    #[pin]
    state: State<S, R>,
}

#[pin_project(project = StateProj)]
enum State<S, R>
where
    S: Service<R>,
{
    Running(#[pin] S::Future),
    /// Boxed: most calls are not held.
    Held(Pin<Box<Held<S, R>>>),
    Refused(Option<Error>),
}

#[pin_project]
struct Held<S, R> {
    until: Timer,
    over: bool,
    service: S,
    request: Option<R>,
}

impl<S, R> Delayed<S, R>
where
    S: Service<R>,
{
    pub(crate) const fn running(call: S::Future) -> Self {
        Self { state: State::Running(call) }
    }

    /// Held until a moment; `service` is readied after that, so that nothing is reserved meanwhile.
    pub(crate) fn held(service: S, request: R, until: Instant) -> Self {
        let until = Timer::new(Deadline::at(until));
        let held = Held { until, over: false, service, request: Some(request) };
        Self { state: State::Held(Box::pin(held)) }
    }

    /// Whether the service was not called, so far.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self.state, State::Held(_))
    }

    pub(crate) const fn refused(error: Error) -> Self {
        Self { state: State::Refused(Some(error)) }
    }
}

impl<S, R> Future for Delayed<S, R>
where
    S: Service<R>,
    S::Error: Into<BoxError> + 'static,
{
    type Output = Result<S::Response, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_asking(cx, |_| Ok(Duration::ZERO))
    }
}

impl<S, R> Delayed<S, R>
where
    S: Service<R>,
    S::Error: Into<BoxError> + 'static,
{
    /// Whenever the moment has come, asks how much longer it is to be held.
    #[inline]
    pub(crate) fn poll_asking(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut ask: impl FnMut(Instant) -> Result<Duration, Error>,
    ) -> Poll<Result<S::Response, Error>> {
        let mut this = self.project();
        loop {
            let called = match this.state.as_mut().project() {
                StateProj::Running(call) => return call.poll(cx).map_err(Error::from_inner),
                StateProj::Refused(error) => {
                    return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
                StateProj::Held(held) => {
                    let held = held.as_mut().project();
                    while !*held.over {
                        ready!(held.until.poll(cx));
                        let now = Scope::poll().now();
                        match ask(now)? {
                            Duration::ZERO => *held.over = true,
                            wait => held.until.reset(Deadline::after(now, wait)),
                        }
                    }
                    ready!(held.service.poll_ready(cx)).map_err(Error::from_inner)?;
                    let Some(request) = held.request.take() else { return Poll::Pending };
                    let scope = Scope::poll();
                    scope.set_sent(Some(scope.now()));
                    held.service.call(request)
                }
            };
            this.state.set(State::Running(called));
        }
    }
}

impl<S, R> fmt::Debug for Delayed<S, R>
where
    S: Service<R>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Running(_) => "running",
            State::Held(_) => "held",
            State::Refused(_) => "refused",
        })
    }
}
