//! A dependency on loopback that fails now and then, for the examples of clients.

use std::collections::HashSet;
use std::future::IntoFuture;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{HeaderName, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::routing::{any, get};
use tokio::net::TcpListener;

/// Knows how many there are of each item; the first who asks for one gets a 503.
///
/// `/items/{item}` is where it tells, `/old/{item}` redirects there, and `/busy` asks every other caller to
/// come again in a second.
#[derive(Debug)]
pub struct Stock {
    address: SocketAddr,
    state: Arc<Mood>,
}

#[derive(Debug, Default)]
struct Mood {
    down: AtomicBool,
    asked: Mutex<HashSet<u32>>,
    busy: AtomicU32,
}

impl Stock {
    /// Starts it on a port of its own.
    ///
    /// # Errors
    ///
    /// If no loopback port can be bound.
    pub async fn start() -> io::Result<Self> {
        let state = Arc::<Mood>::default();
        let app = Router::new()
            .route("/items/{item}", any(item))
            .route("/old/{item}", any(old))
            .route("/busy", get(busy))
            .with_state(Arc::clone(&state));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(axum::serve(listener, app).into_future());
        Ok(Self { address, state })
    }

    /// The address of `path`, which begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From now on it answers 503 to everybody, or no longer.
    pub fn set_down(&self, down: bool) {
        // Relaxed: nothing else hangs on it.
        self.state.down.store(down, Ordering::Relaxed);
    }
}

async fn item(
    State(mood): State<Arc<Mood>>,
    Path(item): Path<u32>,
) -> Result<&'static str, StatusCode> {
    let first = mood.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(item);
    // Relaxed: nothing else hangs on it.
    if first || mood.down.load(Ordering::Relaxed) {
        return Err(StatusCode::SERVICE_UNAVAILABLE);
    }
    Ok("seven left")
}

async fn old(Path(item): Path<u32>) -> (StatusCode, [(HeaderName, String); 1]) {
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, format!("/items/{item}"))])
}

async fn busy(
    State(mood): State<Arc<Mood>>,
) -> Result<&'static str, (StatusCode, [(HeaderName, HeaderValue); 1])> {
    // Relaxed: a figure for itself.
    if mood.busy.fetch_add(1, Ordering::Relaxed) % 2 == 0 {
        let wait = (RETRY_AFTER, HeaderValue::from_static("1"));
        return Err((StatusCode::TOO_MANY_REQUESTS, [wait]));
    }
    Ok("none too busy")
}
