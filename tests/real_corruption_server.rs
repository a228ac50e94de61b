//! A server that carries out what it is asked for, or breaks off at any point of it.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use abate::decisions::rng::Seed;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

use super::dice;

const LARGEST: usize = 256 * 1024;

/// What calls send and get: a stretch of this, another for each.
pub(crate) fn content(id: u64, length: usize) -> &'static [u8] {
    static ALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
        (0..LARGEST as u64 + 1024)
            .map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
            .collect()
    });
    let from = (id % 1021) as usize;
    &ALL[from..from + length]
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Carried out and answered.
    Answered,
    /// Carried out, and the connection closed without a byte.
    AnswerLost,
    /// Carried out, and the answer broken off in its body.
    AnswerCut,
    /// 503 or 429 before the body was read; the rest of it is read.
    RefusedEarly(u16),
    /// The same, and the connection closed.
    RefusedAndClosed(u16),
    /// Closed in the middle of the request.
    Closed,
    /// Read, and never answered.
    Forgotten,
}

#[derive(Default)]
struct Book {
    /// How often each call was carried out.
    effects: BTreeMap<u64, u32>,
    /// How often each call arrived.
    arrivals: BTreeMap<u64, u64>,
    fates: BTreeMap<Fate, u32>,
    /// Requests that were whole by HTTP and not what was to be sent.
    cut_short: Vec<String>,
}

struct State {
    seed: Seed,
    book: Mutex<Book>,
    connected: AtomicUsize,
}

pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    pub(crate) async fn start(seed: Seed) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = State { seed, book: Mutex::default(), connected: AtomicUsize::new(0) };
        let state = Arc::new(state);
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    state.connected.fetch_add(1, SeqCst);
                    // Whatever ends it: the client is there to cope.
                    let _ = serve(stream, &state).await;
                    state.connected.fetch_sub(1, SeqCst);
                });
            }
        });
        Ok(Self { address, state })
    }

    pub(crate) fn uri(&self, id: u64) -> String {
        format!("http://{}/{id}", self.address)
    }

    pub(crate) fn length_of_answer(&self, id: u64) -> usize {
        length_of_answer(self.state.seed, id)
    }

    pub(crate) fn effects(&self) -> BTreeMap<u64, u32> {
        self.state.book().effects.clone()
    }

    pub(crate) fn cut_short(&self) -> Vec<String> {
        self.state.book().cut_short.clone()
    }

    /// Requests that came for a call that had come before.
    pub(crate) fn repeats(&self) -> u64 {
        self.state.book().arrivals.values().map(|times| times - 1).sum()
    }

    pub(crate) fn told(&self) -> String {
        let repeats = self.repeats();
        format!("{:?}, {repeats} repeats", self.state.book().fates)
    }

    pub(crate) async fn until_nobody_is_connected(&self) {
        while self.state.connected.load(SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl State {
    fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of a request that has just arrived.
    fn fate(&self, id: u64) -> Fate {
        let mut book = self.book();
        let times = book.arrivals.entry(id).or_default();
        *times += 1;
        let mut dice = dice(self.seed, id, *times);
        let status = if dice.below(2) == 0 { 503 } else { 429 };
        let fate = match dice.below(100) {
            0..4 => Fate::AnswerLost,
            4..8 => Fate::AnswerCut,
            8..14 => Fate::RefusedEarly(status),
            14..18 => Fate::RefusedAndClosed(status),
            18..22 => Fate::Closed,
            22 => Fate::Forgotten,
            _ => Fate::Answered,
        };
        *book.fates.entry(fate).or_default() += 1;
        fate
    }
}

fn length_of_answer(seed: Seed, id: u64) -> usize {
    seed.part(77).stream(id).below(100_000) as usize
}

struct Head {
    id: u64,
    /// What the caller means to send.
    meant: usize,
    framing: Framing,
}

#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
}

async fn serve(stream: TcpStream, state: &State) -> io::Result<()> {
    let mut stream = BufStream::new(stream);
    while let Some(head) = read_head(&mut stream).await? {
        let fate = state.fate(head.id);
        let early = match fate {
            Fate::RefusedEarly(status) | Fate::RefusedAndClosed(status) => Some(status),
            _ => None,
        };
        if let Some(status) = early {
            refuse(&mut stream, status).await?;
        }
        if matches!(fate, Fate::RefusedAndClosed(_) | Fate::Closed) {
            // Some of the body may be there: closing with unread bytes is a reset.
            return Ok(());
        }
        let body = read_body(&mut stream, head.framing).await?;
        if body != content(head.id, head.meant) {
            let (got, meant) = (body.len(), head.meant);
            state.book().cut_short.push(format!("call {}: {got} of {meant}, {fate:?}", head.id));
        }
        if early.is_some() {
            continue;
        }
        if fate == Fate::Forgotten {
            // Until the client gives up.
            let _ = stream.read_u8().await;
            return Ok(());
        }
        *state.book().effects.entry(head.id).or_default() += 1;
        if fate == Fate::AnswerLost {
            return Ok(());
        }
        let length = length_of_answer(state.seed, head.id);
        let sent = if fate == Fate::AnswerCut { length / 2 } else { length };
        let answer = content(head.id, length);
        stream
            .write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").as_bytes())
            .await?;
        stream.write_all(&answer[..sent]).await?;
        stream.flush().await?;
        if fate == Fate::AnswerCut {
            return Ok(());
        }
    }
    Ok(())
}

async fn refuse(stream: &mut BufStream<TcpStream>, status: u16) -> io::Result<()> {
    let head = format!("HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await
}

async fn read_head(stream: &mut BufStream<TcpStream>) -> io::Result<Option<Head>> {
    let (mut id, mut meant, mut framing) = (0, 0, Framing::Length(0));
    for nth in 0.. {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if nth == 0 {
            let path = line.split(' ').nth(1).and_then(|path| path.strip_prefix('/'));
            id = number(path.unwrap_or_default())?;
        } else if line.is_empty() {
            break;
        } else if let Some(value) = line.strip_prefix("x-length: ") {
            meant = number(value)?;
        } else if let Some(value) = line.strip_prefix("content-length: ") {
            framing = Framing::Length(number(value)?);
        } else if line == "transfer-encoding: chunked" {
            framing = Framing::Chunked;
        }
    }
    Ok(Some(Head { id, meant, framing }))
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| io::Error::other(format!("no number: {text:?}")))
}

async fn read_body(stream: &mut BufStream<TcpStream>, framing: Framing) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    match framing {
        Framing::Length(length) => {
            body.resize(length, 0);
            stream.read_exact(&mut body).await?;
        }
        Framing::Chunked => loop {
            let mut size = String::new();
            stream.read_line(&mut size).await?;
            let size = usize::from_str_radix(size.trim_end(), 16).map_err(io::Error::other)?;
            let at = body.len();
            body.resize(at + size, 0);
            stream.read_exact(&mut body[at..]).await?;
            stream.read_exact(&mut [0; 2]).await?;
            if size == 0 {
                break;
            }
        },
    }
    Ok(body)
}
