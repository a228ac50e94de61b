//! A payment API that deduplicates by key and loses responses, and what clients make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

/// Of a hundred responses, so many are lost after the charge was made.
pub const LOST_PERCENT: u64 = 30;

/// Payments under way at one time.
const AT_ONCE: usize = 20;

/// The request for a payment: its number is the body.
pub type Payment = Request<Full<Bytes>>;

/// Charges whoever asks, once for each `Idempotency-Key` and each time without one.
#[derive(Clone, Debug)]
pub struct Api {
    uri: Uri,
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    charges: Vec<Charge>,
    /// The requests for each payment so far.
    requests: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Charge {
    payment: u32,
    key: Option<Bytes>,
}

impl Api {
    /// Opens it on a loopback port.
    ///
    /// # Errors
    ///
    /// If none can be bound.
    pub async fn start() -> io::Result<Self> {
        let ledger = Arc::<Mutex<Ledger>>::default();
        let served = Arc::clone(&ledger);
        let uri = crate::serve(move |request| charge(Arc::clone(&served), request)).await?;
        Ok(Self { uri, ledger })
    }

    /// What it has charged, and for what.
    #[must_use]
    pub fn books(&self) -> Books {
        let ledger = lock(&self.ledger);
        let mut of_payment = BTreeMap::<u32, u32>::new();
        for charge in &ledger.charges {
            *of_payment.entry(charge.payment).or_default() += 1;
        }
        let keys: BTreeSet<_> = ledger.charges.iter().filter_map(|it| it.key.as_ref()).collect();
        Books {
            requests: ledger.requests.values().sum(),
            charges: ledger.charges.len(),
            keys: keys.len(),
            charged: of_payment.len(),
            overcharged: of_payment.values().filter(|&&charges| charges > 1).count(),
        }
    }
}

/// The API's side of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Books {
    /// Requests that arrived.
    pub requests: u32,
    /// Charges made.
    pub charges: usize,
    /// Different keys among the charges.
    pub keys: usize,
    /// Payments that were charged.
    pub charged: usize,
    /// Those among them that were charged more than once.
    pub overcharged: usize,
}

async fn charge(
    ledger: Arc<Mutex<Ledger>>,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let Some(payment) = str::from_utf8(&body).ok().and_then(|text| text.parse().ok()) else {
        return Ok(crate::answer(StatusCode::BAD_REQUEST, "which payment?"));
    };
    let key = head.headers.get("idempotency-key");
    let key = key.map(|key| Bytes::copy_from_slice(key.as_bytes()));

    let mut ledger = lock(&ledger);
    let known = key.is_some() && ledger.charges.iter().any(|charge| charge.key == key);
    if !known {
        ledger.charges.push(Charge { payment, key });
    }
    let nth = ledger.requests.entry(payment).or_default();
    *nth += 1;
    if is_lost(payment, *nth) {
        // It has been charged, and nobody will be told.
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    Ok(crate::answer(StatusCode::CREATED, "charged"))
}

/// Whether the response to the `nth` request for a payment is lost: the same in every run, and for every client.
fn is_lost(payment: u32, nth: u32) -> bool {
    // splitmix64's finalizer: every input bit reaches every output bit.
    let mut z = (u64::from(payment) << 32 | u64::from(nth)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) % 100 < LOST_PERCENT
}

/// What became of the payments of one client.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The client.
    pub name: &'static str,
    /// Payments it was told of as made.
    pub paid: u32,
    /// Payments that ended with an error, or with another status than 201.
    pub failed: u32,
    /// What the API says.
    pub books: Books,
    /// How long all of it took.
    pub took: Duration,
}

/// Makes `payments` payments at `api` through `client`, twenty at a time, and shows the progress on stderr.
///
/// # Errors
///
/// If a request cannot be built, or the task of a payment panicked.
pub async fn pay<S, R>(
    name: &'static str,
    client: S,
    api: &Api,
    payments: u32,
) -> Result<Outcome, BoxError>
where
    S: Service<Payment, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    R: Body + Send + 'static,
    R::Data: Send,
    R::Error: Send,
{
    let (start, mut calls) = (Instant::now(), JoinSet::new());
    let mut ended = [0, 0];
    for payment in 0..payments {
        if calls.len() >= AT_ONCE {
            count(&mut ended, calls.join_next().await)?;
        }
        let request = Request::post(api.uri.clone()).body(Full::from(payment.to_string()))?;
        let client = client.clone();
        calls.spawn(async move { is_made(client.oneshot(request).await).await });
        progress(name, payment + 1, payments);
    }
    while let Some(call) = calls.join_next().await {
        count(&mut ended, Some(call))?;
    }
    let [failed, paid] = ended;
    Ok(Outcome { name, paid, failed, books: api.books(), took: start.elapsed() })
}

fn count(
    ended: &mut [u32; 2],
    call: Option<Result<bool, tokio::task::JoinError>>,
) -> Result<(), BoxError> {
    if let Some(made) = call {
        ended[usize::from(made?)] += 1;
    }
    Ok(())
}

async fn is_made<R: Body, E>(result: Result<Response<R>, E>) -> bool {
    match result {
        Ok(response) => {
            response.status() == StatusCode::CREATED && response.into_body().collect().await.is_ok()
        }
        Err(_) => false,
    }
}

fn progress(name: &str, made: u32, of: u32) {
    // A line each 100; on a terminal the same one. What cannot be shown is no reason to end the run.
    if made.is_multiple_of(100) || made == of {
        let _ = match (io::stderr().is_terminal(), made == of) {
            (true, false) => write!(io::stderr(), "\r{name}: {made} of {of}\x1b[K"),
            (true, true) => write!(io::stderr(), "\r\x1b[K"),
            (false, true) => writeln!(io::stderr(), "{name}: {of} payments"),
            (false, false) => Ok(()),
        };
    }
}

/// One row for each client.
#[must_use]
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows = String::from(
        "  client                paid  failed  charged  charged twice or more  charges  requests  took\n",
    );
    for Outcome { name, paid, failed, books, took } in outcomes {
        let Books { requests, charges, charged, overcharged, .. } = books;
        rows += &format!(
            "  {name:<20} {paid:>5}  {failed:>6}  {charged:>7}  {overcharged:>21}  {charges:>7}  {requests:>8}  {:.1} s\n",
            took.as_secs_f64()
        );
    }
    rows
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
