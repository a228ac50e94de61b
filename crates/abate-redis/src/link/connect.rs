//! From an endpoint to a connection that has answered once.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::error::Cause;
use crate::endpoint::Endpoint;

/// Keeps an idle connection known to the boxes between us and the server, which often forget one after some minutes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The kernel gives up a connection whose peer has acknowledged nothing for so long.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

/// A connection, and the task that reads and writes it, which ends when it does.
pub(super) struct Line {
    pub connection: MultiplexedConnection,
    task: JoinSet<()>,
}

impl Line {
    /// Resolves when the connection has ended.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub(super) async fn ended(&mut self) {
        self.task.join_next().await;
    }

    /// It has ended already.
    pub(super) fn has_ended(&mut self) -> bool {
        self.task.try_join_next().is_some() || self.task.is_empty()
    }
}

/// One attempt, `number` of many, within the connect timeout.
pub(super) async fn connect(endpoint: &Endpoint, number: usize) -> Result<Line, Cause> {
    let stands = timeout(endpoint.connect_timeout(), dial(endpoint, number));
    stands.await.unwrap_or(Err(Cause::ConnectTimeout))
}

async fn dial(endpoint: &Endpoint, number: usize) -> Result<Line, Cause> {
    let tcp = reach(endpoint, number).await.map_err(|it| Cause::Unreachable(it.kind()))?;
    #[cfg(feature = "tls")]
    if endpoint.is_tls() {
        let stream = super::tls::wrap(endpoint, tcp).await?;
        return greet(endpoint, stream).await;
    }
    greet(endpoint, tcp).await
}

/// A TCP connection to one of the addresses behind the name. Each attempt begins with the next one: an address that
/// swallows everything takes the whole time of one attempt, not of all.
async fn reach(endpoint: &Endpoint, number: usize) -> io::Result<TcpStream> {
    let mut addresses: Vec<SocketAddr> =
        lookup_host((endpoint.host(), endpoint.port())).await?.collect();
    if !addresses.is_empty() {
        let start = number % addresses.len();
        addresses.rotate_left(start);
    }
    let stream = TcpStream::connect(&*addresses).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(stream)
}

/// Logs in, and tells our name: a round trip, so that a server that hangs is no connection.
async fn greet<S>(endpoint: &Endpoint, stream: S) -> Result<Line, Cause>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Time is kept by the driver, which must know what a lost answer means.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let made = MultiplexedConnection::new_with_config(endpoint.login(), stream, config).await;
    let (connection, task) = made.map_err(|error| Cause::of_connecting(&error))?;
    let mut tasks = JoinSet::new();
    tasks.spawn(send(task));
    Ok(Line { connection, task: tasks })
}

/// Only names the bound that the crate's signature leaves to inference.
fn send(task: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send {
    task
}
