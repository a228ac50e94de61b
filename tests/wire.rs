//! A server that is written out byte by byte, and how it is called.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

/// A port that is free.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What takes longer hangs.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// An answer without a body.
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The server's end of a connection.
#[derive(Debug)]
pub struct Peer {
    /// The connection.
    pub stream: TcpStream,
    /// The connection's number, from 0.
    pub number: usize,
    notes: UnboundedSender<Vec<u8>>,
}

impl Peer {
    /// Sends just this.
    ///
    /// # Errors
    ///
    /// When the connection breaks; so for the others.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the head of a request; tells how long the body is that follows.
    ///
    /// # Errors
    ///
    /// As above, or when the length is no number.
    pub async fn head(&mut self) -> io::Result<usize> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(self.stream.read_u8().await?.into());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        length.map_or(Ok(0), |length| length.parse().map_err(io::Error::other))
    }

    /// Reads a request to its end.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn request(&mut self) -> io::Result<Vec<u8>> {
        let mut body = vec![0; self.head().await?];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// Gives these answers to requests, then OK for ever.
    ///
    /// # Errors
    ///
    /// As above.
    pub async fn serve(mut self, answers: &[&[u8]]) -> io::Result<()> {
        for answer in answers.iter().chain(std::iter::repeat(&OK)) {
            self.request().await?;
            self.send(answer).await?;
        }
        Ok(())
    }

    /// Tells the test.
    ///
    /// # Errors
    ///
    /// When the test is over.
    pub fn note(&self, note: Vec<u8>) -> io::Result<()> {
        self.notes.send(note).map_err(io::Error::other)
    }
}

/// A server that plays a script.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    /// What its connections have told.
    pub notes: UnboundedReceiver<Vec<u8>>,
}

impl Server {
    /// Plays `script` on each connection.
    ///
    /// # Errors
    ///
    /// When there is no port.
    pub fn start<F>(script: impl Fn(Peer) -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let socket = TcpSocket::new_v4()?;
        socket.bind(ANY_PORT)?;
        let listener = socket.listen(16)?;
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

    /// How many connections there were.
    #[must_use]
    pub fn connections(&self) -> usize {
        // Relaxed: as above.
        self.accepted.load(Ordering::Relaxed)
    }

    /// What is told next.
    ///
    /// # Errors
    ///
    /// When nothing is.
    pub async fn note(&mut self) -> io::Result<Vec<u8>> {
        let note = timeout(PATIENCE, self.notes.recv()).await?;
        note.ok_or_else(|| io::Error::other("nothing was noted"))
    }

    /// A request that may be repeated.
    #[must_use]
    pub fn get(&self) -> Request<Full<Bytes>> {
        request(Method::GET, self.address, Full::default())
    }
}

/// A request to a server.
pub fn request<B>(method: Method, address: SocketAddr, body: B) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = format!("http://{address}/").parse().unwrap_or_default();
    request
}
