//! The task that keeps a connection and runs requests on it, one at a time.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use abate_core::rng::Seed;
use redis::Pipeline;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep_until, timeout_at};

use super::connect::{Line, connect};
use super::error::{Cause, LinkError};
use super::script::{Answer, Call, Script, answers, by_name, in_full};
use super::supervisor::{Change, Seen, Supervisor};
use crate::endpoint::Endpoint;
use crate::{clock, observe};

type Outcome = Result<Vec<Answer>, LinkError>;
type Dial = Pin<Box<dyn Future<Output = Result<Line, Cause>> + Send>>;

pub(super) struct Request {
    pub script: Script,
    pub calls: Vec<Call>,
    pub deadline: Instant,
    pub outcome: oneshot::Sender<Outcome>,
}

/// Runs until no [`Link`](super::Link) is left to ask.
pub(super) async fn drive(endpoint: Arc<Endpoint>, mut requests: mpsc::Receiver<Request>) {
    let mut driver = Driver {
        supervisor: Supervisor::new(clock::now(), Seed::random().stream(0)),
        endpoint,
        line: None,
        dial: None,
        dials: 0,
    };
    let mut waiting: Option<Request> = None;
    loop {
        let dial_at = driver.supervisor.dial_at().filter(|_| driver.dial.is_none());
        let deadline = waiting.as_ref().map(|request| request.deadline);
        tokio::select! {
            // What is known about the connection comes before what is asked of it.
            biased;
            () = ended(driver.line.as_mut()) => driver.saw(Seen::DroppedIdle),
            dialled = finished(driver.dial.as_mut()) => driver.dialled(dialled),
            () = until(dial_at) => driver.dials(),
            () = until(deadline) => {}
            request = requests.recv(), if waiting.is_none() => match request {
                Some(request) => waiting = Some(request),
                None => return,
            },
        }
        if let Some(request) = waiting.take() {
            waiting = driver.serve(request).await;
        }
    }
}

struct Driver {
    endpoint: Arc<Endpoint>,
    supervisor: Supervisor,
    line: Option<Line>,
    dial: Option<Dial>,
    dials: usize,
}

impl Driver {
    fn dials(&mut self) {
        self.supervisor.dialling();
        let (endpoint, number) = (Arc::clone(&self.endpoint), self.dials);
        self.dials = self.dials.wrapping_add(1);
        self.dial = Some(Box::pin(async move { connect(&endpoint, number).await }));
    }

    fn dialled(&mut self, dialled: Result<Line, Cause>) {
        self.dial = None;
        match dialled {
            Ok(line) => {
                self.line = Some(line);
                self.saw(Seen::Connected);
            }
            Err(cause) => {
                observe::not_connected(&self.endpoint, &cause);
                self.saw(Seen::NotConnected(cause));
            }
        }
    }

    fn saw(&mut self, seen: Seen) {
        let settled = matches!(seen, Seen::Answered);
        let orders = self.supervisor.saw(seen, clock::now());
        if orders.cut {
            self.line = None;
        }
        if orders.cut || settled {
            self.dial = None;
        }
        match orders.change {
            Some(Change::Down(cause)) => observe::store_down(&self.endpoint, &cause),
            Some(Change::Up) => observe::store_up(&self.endpoint),
            None => {}
        }
    }

    /// Runs `request` if there is a connection; gives it back if there may be one before its time is up.
    async fn serve(&mut self, request: Request) -> Option<Request> {
        if self.line.as_mut().is_some_and(Line::has_ended) {
            self.saw(Seen::DroppedIdle);
        }
        let now = clock::now();
        let Some(line) = &mut self.line else {
            let dials = self.dial.is_some()
                || self.supervisor.dial_at().is_some_and(|at| at < request.deadline);
            if dials && now < request.deadline {
                return Some(request);
            }
            answer(request, Err(LinkError::Unsent(self.supervisor.cause())));
            return None;
        };
        if now >= request.deadline {
            answer(request, Err(LinkError::Unsent(Cause::Busy)));
            return None;
        }
        let (outcome, seen) = run(line, &request).await;
        self.saw(seen);
        answer(request, outcome);
        None
    }
}

fn answer(request: Request, outcome: Outcome) {
    // Whoever asked may have gone: then nobody wants to know.
    let _ = request.outcome.send(outcome);
}

/// Sends all calls; then once more, with the script, those for which the server says it does not have it.
async fn run(line: &mut Line, request: &Request) -> (Outcome, Seen) {
    let Request { script, calls, .. } = request;
    let mut all = match ask(line, by_name(script, calls), calls.len(), request.deadline).await {
        Ok(all) => all,
        Err(failed) => return failed,
    };
    let no_script = |answer: &Answer| matches!(answer, Err(refusal) if refusal.is_no_script());
    let places: Vec<usize> = (0..all.len()).filter(|place| no_script(&all[*place])).collect();
    if !places.is_empty() {
        let full = in_full(script, calls, &places);
        match ask(line, full, places.len(), request.deadline).await {
            Ok(again) => {
                for (place, answer) in places.into_iter().zip(again) {
                    all[place] = answer;
                }
            }
            Err(failed) => return failed,
        }
    }
    let refusal = all.iter().find_map(|answer| answer.as_ref().err()).cloned();
    (Ok(all), refusal.map_or(Seen::Answered, Seen::Refused))
}

async fn ask(
    line: &mut Line,
    pipeline: Pipeline,
    count: usize,
    deadline: Instant,
) -> Result<Vec<Answer>, (Outcome, Seen)> {
    let unknown = |cause: Cause, seen| Err((Err(LinkError::Unknown(cause)), seen));
    let answered = line.connection.send_packed_commands(&pipeline, 0, count);
    match timeout_at(deadline.into(), answered).await {
        Ok(Ok(values)) if values.len() == count => Ok(answers(values)),
        Ok(Ok(_)) => unknown(Cause::Garbled, Seen::Dropped(Cause::Garbled)),
        Ok(Err(error)) => {
            let cause = Cause::of_answer(&error);
            unknown(cause.clone(), Seen::Dropped(cause))
        }
        Err(_) => unknown(Cause::Timeout, Seen::TimedOut),
    }
}

async fn ended(line: Option<&mut Line>) {
    match line {
        Some(line) => line.ended().await,
        None => pending().await,
    }
}

async fn finished(dial: Option<&mut Dial>) -> Result<Line, Cause> {
    match dial {
        Some(dial) => dial.await,
        None => pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time.into()).await,
        None => pending().await,
    }
}
