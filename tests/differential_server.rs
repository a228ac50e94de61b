//! A server written for itself, on the clock of the test: it checks the simulator's as well. Works on some
//! requests at once, queues some more, fails some, and has outages.

use std::cell::{Ref, RefCell};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use abate::BoxError;
use abate_sim::law::attempt_fails;
use abate_sim::model::{Fault, Model};
use abate_sim::trace::{Happening, What};
use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::Instant;
use tower::Service;

use crate::differential_clients::Number;

/// An attempt: the number of its call, and its own from 1.
type Attempt = (u32, u32);

/// The server; clones are one.
#[derive(Clone)]
pub(crate) struct Server(Rc<RefCell<Room>>);

struct Room {
    model: Model,
    seed: u64,
    start: Instant,
    /// The attempts that each call has sent.
    sent: HashMap<u32, u32>,
    /// When the work on each will be done.
    work: BTreeSet<(Duration, Attempt)>,
    queue: VecDeque<Attempt>,
    /// Held up on their way.
    held: VecDeque<Attempt>,
    /// Somebody waits for them, and since when.
    awaited: HashMap<Attempt, Duration>,
    answers: HashMap<Attempt, StatusCode>,
    /// The call whose answer has come last, until it was asked for.
    answered: Option<u32>,
    trace: Vec<Happening>,
}

impl Server {
    pub(crate) fn new(model: &Model, seed: u64, start: Instant) -> Self {
        Self(Rc::new(RefCell::new(Room {
            model: model.clone(),
            seed,
            start,
            sent: HashMap::new(),
            work: BTreeSet::new(),
            queue: VecDeque::new(),
            held: VecDeque::new(),
            awaited: HashMap::new(),
            answers: HashMap::new(),
            answered: None,
            trace: Vec::new(),
        })))
    }

    /// When it has something to do of itself, if no more requests come.
    pub(crate) fn next(&self) -> Option<Duration> {
        let room = self.0.borrow();
        let now = room.now();
        let troubles = room.model.troubles.iter().map(|trouble| trouble.to);
        let freed = troubles.filter(|to| *to > now).min().filter(|_| !room.held.is_empty());
        let done = room.work.first().map(|(at, _)| *at);
        [freed, done].into_iter().flatten().min()
    }

    /// Does the first of what is due, if anything is.
    pub(crate) fn act(&self) -> bool {
        let mut room = self.0.borrow_mut();
        let now = room.now();
        if room.trouble() != Some(Fault::Hold)
            && let Some(attempt) = room.held.pop_front()
        {
            room.arrive(attempt);
            return true;
        }
        let Some((at, attempt)) = room.work.first().copied().filter(|(at, _)| *at <= now) else {
            return false;
        };
        room.work.remove(&(at, attempt));
        if let Some(next) = room.queue.pop_front() {
            room.take_up(next);
        }
        let (call, number) = attempt;
        let error_rate = room.model.servers[0].error_rate;
        let fails = attempt_fails(error_rate, room.seed, call, number);
        room.answer(attempt, if fails { 500 } else { 200 });
        true
    }

    /// The call that was answered by that, and is to be polled.
    pub(crate) fn answered(&self) -> Option<u32> {
        self.0.borrow_mut().answered.take()
    }

    /// Notes something of a call that is not the server's to know.
    pub(crate) fn note(&self, call: u32, what: What) {
        let mut room = self.0.borrow_mut();
        let attempt = room.sent.get(&call).copied().unwrap_or(0);
        room.note((call, attempt), what);
    }

    pub(crate) fn trace(&self) -> Ref<'_, [Happening]> {
        Ref::map(self.0.borrow(), |room| room.trace.as_slice())
    }
}

impl Room {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn note(&mut self, (call, attempt): Attempt, what: What) {
        let at = u64::try_from(self.now().as_nanos()).unwrap_or(u64::MAX);
        self.trace.push(Happening { at, call, attempt, what });
    }

    /// What is wrong at the moment.
    fn trouble(&self) -> Option<Fault> {
        let now = self.now();
        let current = self.model.troubles.iter().find(|it| it.from <= now && now < it.to);
        current.map(|trouble| trouble.what)
    }

    fn send(&mut self, call: u32) -> Attempt {
        let number = self.sent.entry(call).or_default();
        *number += 1;
        let attempt = (call, *number);
        self.note(attempt, What::Sent);
        self.awaited.insert(attempt, self.now());
        self.arrive(attempt);
        attempt
    }

    fn arrive(&mut self, attempt: Attempt) {
        let rules = &self.model.servers[0];
        let busy = self.work.len();
        match self.trouble() {
            Some(Fault::Hold) => self.held.push_back(attempt),
            Some(Fault::Down { status }) => self.answer(attempt, status),
            _ if rules.workers.is_none_or(|most| busy < most as usize) => self.take_up(attempt),
            _ if rules.queue.is_some_and(|most| self.queue.len() >= most as usize) => {
                self.answer(attempt, 503);
            }
            _ => self.queue.push_back(attempt),
        }
    }

    fn take_up(&mut self, (call, number): Attempt) {
        let takes = self.model.servers[0].service.of_attempt(self.seed, call, number);
        let done = self.now() + takes;
        let whole = Duration::from_millis(done.as_nanos().div_ceil(1_000_000) as u64);
        self.work.insert((whole, (call, number)));
    }

    fn answer(&mut self, attempt: Attempt, status: u16) {
        if let Ok(status) = StatusCode::from_u16(status)
            && self.awaited.contains_key(&attempt)
        {
            self.answers.insert(attempt, status);
            self.answered = Some(attempt.0);
        }
    }

    /// Nobody waits for the answer any longer.
    fn leave(&mut self, attempt: Attempt) {
        let Some(since) = self.awaited.remove(&attempt) else { return };
        let conduct = &self.model.groups[0].conduct;
        if conduct.attempt_timeout && self.now() - since >= conduct.policy.attempt_timeout() {
            self.note(attempt, What::TimedOut);
        }
        if self.model.groups[0].cancels {
            self.queue.retain(|queued| *queued != attempt);
            self.held.retain(|held| *held != attempt);
        }
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        let number = request.extensions().get::<Number>();
        let attempt = number.map(|Number(call)| self.0.borrow_mut().send(*call));
        Answer { server: self.clone(), attempt }
    }
}

/// The answer to come. It wakes nobody: whoever has the server act polls the call that is answered.
pub(crate) struct Answer {
    server: Server,
    attempt: Option<Attempt>,
}

impl Future for Answer {
    type Output = Result<Response<Full<Bytes>>, BoxError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(attempt) = self.attempt else {
            return Poll::Ready(Err("a request without a number".into()));
        };
        let mut room = self.server.0.borrow_mut();
        let Some(status) = room.answers.remove(&attempt) else { return Poll::Pending };
        room.awaited.remove(&attempt);
        room.answered = None;
        room.note(attempt, What::Answered { status: status.as_u16() });
        let mut response = Response::new(Full::from(status.as_str().to_owned()));
        *response.status_mut() = status;
        if let Some(after) = room.model.servers[0].retry_after
            && status.is_server_error()
        {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_secs()));
        }
        Poll::Ready(Ok(response))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(attempt) = self.attempt {
            self.server.0.borrow_mut().leave(attempt);
        }
    }
}
