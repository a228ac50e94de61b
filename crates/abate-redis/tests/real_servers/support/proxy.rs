use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Which way bytes are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Requests,
    Replies,
    Both,
}

/// A network between a client and a server on loopback, which fails on demand. What fails and what does not can be
/// changed at any time, and holds from the next bytes on. It ends with its handle.
pub(crate) struct Proxy {
    port: u16,
    faults: watch::Sender<Faults>,
    connections: watch::Receiver<u64>,
    task: AbortHandle,
}

#[derive(Debug, Clone, Default)]
struct Faults {
    delay: Duration,
    /// Of connections with a number below the second.
    swallow: Option<(Direction, u64)>,
    cut_replies_after: Option<usize>,
    refuse: bool,
}

impl Proxy {
    pub(crate) async fn start(server: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (faults, seen) = watch::channel(Faults::default());
        let (count, connections) = watch::channel(0);
        let task = tokio::spawn(serve(listener, server, seen, count)).abort_handle();
        Ok(Self { port, faults, connections, task })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> u64 {
        *self.connections.borrow()
    }

    /// Each piece comes later by so much, each way.
    pub(crate) fn delay(&self, delay: Duration) {
        self.faults.send_modify(|it| it.delay = delay);
    }

    /// Bytes vanish, and nobody is told. A connection that has lost some stays lost.
    pub(crate) fn swallow(&self, direction: Direction) {
        self.faults.send_modify(|it| it.swallow = Some((direction, u64::MAX)));
    }

    /// The same, for the connections that stand now: as when a firewall on the way forgets them.
    pub(crate) fn swallow_present(&self, direction: Direction) {
        let present = self.connections();
        self.faults.send_modify(|it| it.swallow = Some((direction, present)));
    }

    /// Connections are reset after so many bytes of the next reply.
    pub(crate) fn cut_replies_after(&self, bytes: usize) {
        self.faults.send_modify(|it| it.cut_replies_after = Some(bytes));
    }

    /// Nothing listens.
    pub(crate) fn refuse(&self) {
        self.faults.send_modify(|it| it.refuse = true);
    }

    /// All is well again.
    pub(crate) fn heal(&self) {
        self.faults.send_modify(|it| *it = Faults::default());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    listener: TcpListener,
    server: u16,
    mut faults: watch::Receiver<Faults>,
    count: watch::Sender<u64>,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let mut listener = Some(listener);
    loop {
        let refuse = faults.borrow_and_update().refuse;
        if refuse {
            listener = None;
        } else if listener.is_none() {
            listener = Some(TcpListener::bind(address).await?);
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = faults.changed() => changed?,
            accepted = accepted => {
                let (client, _) = accepted?;
                let number = *count.borrow();
                count.send_modify(|it| *it += 1);
                tokio::spawn(relay(client, server, faults.clone(), number));
            }
        }
    }
}

async fn relay(
    client: TcpStream,
    server: u16,
    faults: watch::Receiver<Faults>,
    number: u64,
) -> anyhow::Result<()> {
    let server = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, server))).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = pump(from_client, to_server, Direction::Requests, faults.clone(), number);
    let replies = pump(from_server, to_client, Direction::Replies, faults, number);
    // Whichever side closes takes the other with it, but for one that is swallowed, which hears nothing.
    tokio::select! {
        ended = requests => ended,
        ended = replies => ended,
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    faults: watch::Receiver<Faults>,
    number: u64,
) -> anyhow::Result<()> {
    let mut piece = [0; 16 * 1024];
    let mut lost = false;
    loop {
        let length = from.read(&mut piece).await?;
        let now = faults.borrow().clone();
        let (swallowed, below) = now.swallow.unwrap_or((direction, 0));
        lost |= number < below && (swallowed == direction || swallowed == Direction::Both);
        if lost && length == 0 {
            return std::future::pending().await;
        }
        if length == 0 {
            return Ok(());
        }
        if lost {
            continue;
        }
        tokio::time::sleep(now.delay).await;
        if let (Direction::Replies, Some(bytes)) = (direction, now.cut_replies_after) {
            to.write_all(&piece[..bytes.min(length)]).await?;
            // A reset, not an orderly end.
            SockRef::from(to.as_ref()).set_linger(Some(Duration::ZERO))?;
            return Ok(());
        }
        to.write_all(&piece[..length]).await?;
    }
}
