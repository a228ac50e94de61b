//! An nginx of our own on free loopback ports, with an upstream behind it; it ends with its handle.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::task::AbortHandle;

/// What is behind the proxy.
#[derive(Clone, Copy)]
pub(crate) enum Upstream {
    /// Answers with 200.
    Answers,
    /// Takes requests and says nothing.
    Hangs,
    /// Nothing listens there.
    Refuses,
}

pub(crate) struct Nginx {
    port: u16,
    /// Killed with the handle.
    _process: Child,
    upstream: Option<AbortHandle>,
    folder: PathBuf,
}

impl Nginx {
    /// One that has begun to listen; `None` where there is none on this machine.
    pub(crate) async fn start(upstream: Upstream) -> anyhow::Result<Option<Self>> {
        let Some(program) = std::env::var_os("ABATE_NGINX") else {
            if std::env::var("CI").is_ok_and(|it| it == "true") {
                bail!("ABATE_NGINX is not set: scripts/test brings nginx and sets it");
            }
            return Ok(None);
        };
        let (upstream_port, upstream) = start_upstream(upstream).await?;
        // The port is free until nginx takes it; another process that is faster shows as an error.
        let port = free_port().await?;
        let folder = std::env::temp_dir().join(format!("abate-nginx-{port}"));
        std::fs::create_dir_all(&folder)?;
        let config = folder.join("nginx.conf");
        let text = config_text(&folder.display().to_string(), port, upstream_port);
        std::fs::File::create(&config)?.write_all(text.as_bytes())?;
        let log = std::fs::File::create(folder.join("stderr"))?;
        let process = Command::new(program)
            .args(["-c".as_ref(), config.as_os_str(), "-p".as_ref(), folder.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting nginx")?;
        let mut nginx = Self { port, _process: process, upstream, folder };
        nginx.until_it_listens().await?;
        Ok(Some(nginx))
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    async fn until_it_listens(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            if let Some(status) = self._process.try_wait()? {
                let told = std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
                bail!("nginx ended with {status}: {told}");
            }
            if started.elapsed() > Duration::from_secs(20) {
                bail!("nginx does not listen");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if let Some(upstream) = &self.upstream {
            upstream.abort();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?.local_addr()?.port())
}

async fn start_upstream(upstream: Upstream) -> anyhow::Result<(u16, Option<AbortHandle>)> {
    if matches!(upstream, Upstream::Refuses) {
        return Ok((free_port().await?, None));
    }
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let port = listener.local_addr()?.port();
    let answers = matches!(upstream, Upstream::Answers);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answers));
        }
    });
    Ok((port, Some(task.abort_handle())))
}

/// One request a connection, as nginx's default towards an upstream has it.
async fn serve(mut stream: TcpStream, answers: bool) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    if !answers {
        return std::future::pending().await;
    }
    stream.write_all(b"HTTP/1.0 200 OK\r\ncontent-length: 10\r\n\r\nhere it is").await?;
    stream.shutdown().await
}

fn config_text(folder: &str, port: u16, upstream: u16) -> String {
    format!(
        "daemon off;
master_process off;
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    limit_req_zone $server_addr zone=five:64k rate=5r/s;
    limit_req_zone $server_addr zone=one:64k rate=1r/s;
    proxy_next_upstream off;
    proxy_connect_timeout 1s;
    proxy_read_timeout 1s;
    server {{
        listen 127.0.0.1:{port};
        location /proxied {{ proxy_pass http://127.0.0.1:{upstream}; }}
        location /limited {{
            limit_req zone=five;
            limit_req_status 429;
            proxy_pass http://127.0.0.1:{upstream};
        }}
        location /limited-503 {{
            limit_req zone=one;
            proxy_pass http://127.0.0.1:{upstream};
        }}
        location /closing {{
            keepalive_requests 2;
            keepalive_timeout 50ms;
            proxy_pass http://127.0.0.1:{upstream};
        }}
    }}
}}
"
    )
}
