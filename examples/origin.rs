//! Small HTTP/1.1 origins on loopback, and what `storm` measures with them, each module using only those before it:
//! [`tally`], [`progress`], [`load`], [`figures`], [`chart`]. By themselves: [`payments`], and [`stock`], the
//! dependency of the clients.

pub mod chart;
pub mod figures;
pub mod load;
pub mod payments;
pub mod progress;
pub mod stock;
pub mod tally;

use std::future::Future;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// An origin with a fixed number of workers behind a FIFO queue without bound.
///
/// It does what many real servers do under overload: it keeps every request it has accepted, and works on it even when
/// the client has long given up.
#[derive(Debug)]
pub struct Origin {
    uri: Uri,
    stalled: watch::Sender<bool>,
}

impl Origin {
    /// Starts `workers` workers that take `service_time` for each request.
    ///
    /// # Errors
    ///
    /// If no loopback port can be bound.
    pub async fn start(workers: usize, service_time: Duration) -> io::Result<Self> {
        let (stalled, _) = watch::channel(false);
        let (queue, jobs) = mpsc::unbounded_channel::<Job>();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..workers {
            tokio::spawn(work(Arc::clone(&jobs), stalled.subscribe(), service_time));
        }
        // The job lives in the queue, not in the connection's future: a client that hangs up takes nothing back.
        let uri = serve(move |_| {
            let (done, finished) = oneshot::channel();
            let accepted = queue.send(Job { arrived: Instant::now(), done });
            async move {
                Ok(match (accepted, finished.await) {
                    (Ok(()), Ok(())) => answer(StatusCode::OK, "hello"),
                    _ => answer(StatusCode::INTERNAL_SERVER_ERROR, "no workers"),
                })
            }
        })
        .await?;
        Ok(Self { uri, stalled })
    }

    /// Where it listens.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// From now on no worker finishes anything, while requests keep being accepted.
    pub fn stall(&self) {
        self.stalled.send_replace(true);
    }

    /// Lets the workers finish what they hold, and go on with the queue.
    pub fn release(&self) {
        self.stalled.send_replace(false);
    }
}

/// Starts an origin that answers 503 twice, then 200 `hello`; returns where it listens.
///
/// # Errors
///
/// If no loopback port can be bound.
pub async fn flaky_origin() -> io::Result<Uri> {
    let seen = Arc::new(AtomicU32::new(0));
    serve(move |_| {
        // Relaxed: the count is all that is shared.
        let earlier = seen.fetch_add(1, Ordering::Relaxed);
        std::future::ready(Ok(match earlier {
            0 | 1 => answer(StatusCode::SERVICE_UNAVAILABLE, "not yet"),
            _ => answer(StatusCode::OK, "hello"),
        }))
    })
    .await
}

/// An origin that is down for one path and up for another: 503 to `/down`, 200 to all else. Tells its address, and
/// counts the requests but for those to `/before`.
///
/// # Errors
///
/// If no loopback port can be bound.
pub async fn half_down() -> io::Result<(Uri, Arc<AtomicU32>)> {
    let seen = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&seen);
    let uri = serve(move |request| {
        let path = request.uri().path();
        // Relaxed: the count is all that is shared.
        counter.fetch_add(u32::from(path != "/before"), Ordering::Relaxed);
        std::future::ready(Ok(match path {
            "/down" => answer(StatusCode::SERVICE_UNAVAILABLE, "down"),
            _ => answer(StatusCode::OK, "hello"),
        }))
    })
    .await?;
    Ok((uri, seen))
}

#[derive(Debug)]
struct Job {
    arrived: Instant,
    done: oneshot::Sender<()>,
}

async fn work(
    jobs: Arc<Mutex<mpsc::UnboundedReceiver<Job>>>,
    mut stalled: watch::Receiver<bool>,
    service_time: Duration,
) {
    let mut free = Instant::now();
    loop {
        // Tokio's mutex is fair, so jobs are handed out in the order of their arrival.
        let Some(job) = jobs.lock().await.recv().await else {
            return;
        };
        // Counted from when the worker was due, not from when its timer woke it: else every late timer would cost
        // capacity, and how long a recovery takes hangs on the last few percent of it.
        free = free.max(job.arrived) + service_time;
        sleep_until(free).await;
        if *stalled.borrow() {
            if stalled.wait_for(|stalled| !stalled).await.is_err() {
                return;
            }
            free = Instant::now();
        }
        // The receiver is gone if the client is; the work is done all the same.
        let _ = job.done.send(());
    }
}

/// Serves every request on a new loopback port with `handler`, for as long as the runtime lives. An error of the handler
/// closes the connection without a response.
async fn serve<H, F>(handler: H) -> io::Result<Uri>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = io::Result<Response<Full<Bytes>>>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most likely: waiting is better than spinning.
                sleep(Duration::from_millis(10)).await;
                continue;
            };
            let handler = handler.clone();
            tokio::spawn(async move {
                let service = service_fn(handler);
                // An error here is a client that hung up, which is daily bread in a storm.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    format!("http://{address}/").parse().map_err(io::Error::other)
}

fn answer(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}
