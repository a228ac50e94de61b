use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::Request;
use http::request::Parts;

use super::answer::Answer;
use crate::context::Attempt;

/// What clones of a dependency share: the script, and what has arrived.
#[derive(Debug, Clone)]
pub(super) struct Record(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    answers: Vec<Answer>,
    /// The answers given since the script was set.
    given: usize,
    requests: Vec<Request<Bytes>>,
    attempts: Vec<u32>,
}

impl Record {
    pub(super) fn new(answers: Vec<Answer>) -> Self {
        let (requests, attempts) = (Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(Entries { answers, given: 0, requests, attempts })))
    }

    pub(super) fn set_answers(&self, answers: Vec<Answer>) {
        let mut entries = self.entries();
        (entries.answers, entries.given) = (answers, 0);
    }

    /// Notes a request whose body is still to be read. Returns its place, and the answer to it.
    pub(super) fn enter(&self, head: Parts) -> (usize, Option<Answer>) {
        let attempt = head.extensions.get().copied().or_else(Attempt::current);
        let mut entries = self.entries();
        let place = entries.requests.len();
        entries.attempts.push(attempt.map_or(1, Attempt::number));
        entries.requests.push(Request::from_parts(head, Bytes::new()));
        let answer = entries.answers.get(entries.given).or(entries.answers.last()).cloned();
        entries.given += 1;
        (place, answer)
    }

    pub(super) fn set_body(&self, place: usize, body: Bytes) {
        if let Some(request) = self.entries().requests.get_mut(place) {
            *request.body_mut() = body;
        }
    }

    pub(super) fn calls(&self) -> usize {
        self.entries().requests.len()
    }

    pub(super) fn requests(&self) -> Vec<Request<Bytes>> {
        self.entries().requests.clone()
    }

    pub(super) fn attempts(&self) -> Vec<u32> {
        self.entries().attempts.clone()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
