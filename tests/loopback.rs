//! A server on the loopback that plays a script on each connection, for the tests named `real_*`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use abate::{Fault, Report, Tried, TriedResult};
use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

pub(crate) type Test = anyhow::Result<()>;

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// What takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The server's end of a connection, and the connection's number, from 0.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    pub(crate) number: usize,
    notes: UnboundedSender<String>,
}

impl Peer {
    /// Tells the test.
    pub(crate) fn note(&self, note: impl ToString) -> io::Result<()> {
        self.notes.send(note.to_string()).map_err(io::Error::other)
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    notes: UnboundedReceiver<String>,
}

impl Server {
    pub(crate) async fn start<F>(script: impl Fn(Peer) -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind(ANY_PORT).await?;
        let (address, accepted) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
        let (sender, notes) = mpsc::unbounded_channel();
        let server = Self { address, accepted: Arc::clone(&accepted), notes };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Relaxed: a number, read when the call is over.
                let number = accepted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(script(Peer { stream, number, notes: sender.clone() }));
            }
        });
        Ok(server)
    }

    pub(crate) fn connections(&self) -> usize {
        // Relaxed: as above.
        self.accepted.load(Ordering::Relaxed)
    }

    /// What a peer notes next.
    pub(crate) async fn note(&mut self) -> anyhow::Result<String> {
        timeout(PATIENCE, self.notes.recv()).await?.context("nothing was noted")
    }

    /// What was noted and not yet read.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).collect()
    }

    pub(crate) fn request(&self, scheme: &str, method: Method) -> Request<Full<Bytes>> {
        let body = if method == Method::GET { Full::default() } else { Full::from("data") };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("{scheme}://{}/", self.address).parse().unwrap_or_default();
        request
    }
}

/// What the attempts came to: a status, or the fault.
pub(crate) fn tried(report: Option<&Report>) -> Vec<Result<u16, Fault>> {
    let each = |tried: &Tried| match tried.result() {
        TriedResult::Status(status) => Ok(status.as_u16()),
        TriedResult::Fault(fault) => Err(fault),
        _ => Err(Fault::Local),
    };
    report.into_iter().flat_map(Report::tried).map(each).collect()
}

pub(crate) fn report<B>(response: &Response<B>) -> Option<&Report> {
    response.extensions().get()
}
