//! A dependency in this process that is healthy for a while and then fails, and counts who asks it how often.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tokio::time::{Instant, sleep};
use tower::service_fn;

use crate::peers::{HttpClient, splitmix};

/// Calls start this far apart.
pub const GAP: Duration = Duration::from_millis(1);

/// So many are due in a second.
pub const RATE: usize = 1_000;

/// Seconds in which everything is answered 200.
pub const HEALTH: usize = 10;

/// Seconds after them in which faults happen; the calls of these are what is reported.
pub const TROUBLE: usize = 60;

/// What an answer takes, whichever it is.
pub const LATENCY: Duration = Duration::from_millis(5);

/// What the calls of the troubled seconds came to.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Attempts per call.
    pub mean: f64,
    /// Attempts in the busiest second per call due in a second.
    pub worst: f64,
    /// Share of the calls that were answered 200.
    pub success: f64,
}

/// Answers in 5 ms, and counts.
#[derive(Debug)]
pub struct Dependency {
    start: Instant,
    /// In percent, from the end of the healthy seconds.
    faults: u64,
    /// Attempts by the second of their arrival.
    seconds: Mutex<Vec<u32>>,
    /// Attempts by call.
    attempts: Vec<AtomicU32>,
}

impl Dependency {
    /// It starts now; `faults` is the share of the attempts that fail in trouble, in percent.
    #[must_use]
    pub fn new(faults: u64) -> Self {
        let calls = (HEALTH + TROUBLE) * RATE;
        Self {
            start: Instant::now(),
            faults,
            seconds: Mutex::default(),
            attempts: (0..calls).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// When it started.
    #[must_use]
    pub fn start(&self) -> Instant {
        self.start
    }

    /// It as tower sees it; the last segment of the path is the number of the call.
    pub fn client<B: Send + 'static>(
        self: Arc<Self>,
    ) -> impl HttpClient<B, Body = Empty<Bytes>, Error = Infallible> {
        service_fn(move |request: Request<B>| {
            let dependency = Arc::clone(&self);
            async move {
                let mut response = Response::new(Empty::new());
                *response.status_mut() = dependency.answer(request.uri().path()).await;
                Ok(response)
            }
        })
    }

    /// What an attempt at `path` comes to.
    pub async fn answer(&self, path: &str) -> StatusCode {
        let second = self.start.elapsed().as_secs() as usize;
        {
            let mut seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = seconds.len().max(second + 1);
            seconds.resize(seen, 0);
            seconds[second] += 1;
        }
        let number = path.rsplit('/').next().and_then(|number| number.parse().ok());
        let call = number.and_then(|number: usize| self.attempts.get(number));
        let (Some(number), Some(attempts)) = (number, call) else {
            return StatusCode::NOT_FOUND;
        };
        // Relaxed: the count is all that is shared.
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        sleep(LATENCY).await;
        if second >= HEALTH && draw(number, attempt) < self.faults {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        }
    }

    /// What it came to, with so many calls of the troubled seconds answered 200.
    #[must_use]
    pub fn figures(&self, successes: u32) -> Figures {
        let seconds = self.seconds.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = (TROUBLE * RATE) as f64;
        let attempts = self.attempts.iter().skip(HEALTH * RATE);
        // Relaxed: every call has ended.
        let attempts: u32 = attempts.map(|attempts| attempts.load(Ordering::Relaxed)).sum();
        let worst = seconds.iter().skip(HEALTH).max().copied().unwrap_or(0);
        Figures {
            mean: f64::from(attempts) / calls,
            worst: f64::from(worst) / RATE as f64,
            success: f64::from(successes) / calls,
        }
    }
}

/// From 0 to 99, the same in every run.
fn draw(call: usize, attempt: u32) -> u64 {
    splitmix(call as u64 * 16 + u64::from(attempt)) % 100
}
