//! An HTTP/1.1 server of raw bytes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

use super::PATIENCE;

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
pub(crate) const BUSY: &str = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";

/// A request as it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Got {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: String,
}

impl Got {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &'_ str| line.split_once(": ").is_some_and(|(own, _)| own == name);
        let line = self.head.lines().find(|line| named(line))?;
        line.split_once(": ").map(|(_, value)| value)
    }
}

/// The server's end of a connection, and the connection's number, from 0.
pub(crate) struct Peer {
    stream: BufReader<TcpStream>,
    pub(crate) number: usize,
    notes: UnboundedSender<Got>,
}

impl Peer {
    pub(crate) async fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes()).await
    }

    pub(crate) async fn head(&mut self) -> io::Result<Got> {
        Ok(Got { head: self.paragraph().await?, ..Got::default() })
    }

    /// Reads the first chunk of a body that comes in chunks.
    pub(crate) async fn chunk(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::from_str_radix(&self.line().await?, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk).await?;
        if length > 0 {
            self.line().await?;
        }
        Ok(chunk)
    }

    /// Reads a request to its end, and tells the test.
    pub(crate) async fn request(&mut self) -> io::Result<Got> {
        let mut got = self.head().await?;
        self.rest(&mut got).await?;
        self.note(&got)?;
        Ok(got)
    }

    /// Reads what there is after the head.
    pub(crate) async fn rest(&mut self, got: &mut Got) -> io::Result<()> {
        if let Some(length) = got.header("content-length") {
            got.body.resize(length.parse().map_err(io::Error::other)?, 0);
            self.stream.read_exact(&mut got.body).await?;
        } else if got.header("transfer-encoding") == Some("chunked") {
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    break;
                }
                got.body.extend(chunk);
            }
            got.trailers = self.paragraph().await?;
        }
        Ok(())
    }

    /// Reads until the other end is closed.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        self.stream.read_to_end(&mut Vec::new()).await.map(drop)
    }

    pub(crate) fn note(&self, got: &Got) -> io::Result<()> {
        self.notes.send(got.clone()).map_err(io::Error::other)
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Lines to the next empty one.
    async fn paragraph(&mut self) -> io::Result<String> {
        let mut lines = String::new();
        loop {
            match &*self.line().await? {
                "" => return Ok(lines),
                line => lines.extend([line, "\n"]),
            }
        }
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    notes: UnboundedReceiver<Got>,
}

impl Server {
    /// Plays `script` on each connection.
    pub(crate) async fn start<F>(script: impl Fn(Peer) -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = listen().await?;
        let (address, (sender, notes)) = (listener.local_addr()?, mpsc::unbounded_channel());
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let stream = BufReader::new(stream);
                tokio::spawn(script(Peer { stream, number, notes: sender.clone() }));
            }
        });
        Ok(Self { address, notes })
    }

    /// The next request that was read to its end.
    pub(crate) async fn got(&mut self) -> anyhow::Result<Got> {
        timeout(PATIENCE, self.notes.recv()).await?.context("nothing came")
    }

    /// All that were.
    pub(crate) fn all(mut self) -> Vec<Got> {
        std::iter::from_fn(|| self.notes.try_recv().ok()).collect()
    }
}

pub(crate) async fn listen() -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).await
}
