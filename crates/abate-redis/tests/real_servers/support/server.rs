use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Valkey,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Redis, Self::Valkey];

    const fn variable(self) -> &'static str {
        match self {
            Self::Redis => "ABATE_REDIS",
            Self::Valkey => "ABATE_VALKEY",
        }
    }
}

/// A server on a free loopback port, with a folder of its own, which keeps nothing on disk unless told to.
/// It is killed, by its own process id, with its handle.
pub(crate) struct Server {
    kind: Kind,
    port: u16,
    folder: TempDir,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// One that answers, with `settings` as on its command line; `None` where there is none on this machine.
    pub(crate) fn start(kind: Kind, settings: &[&str]) -> anyhow::Result<Option<Self>> {
        if std::env::var_os(kind.variable()).is_none() {
            if std::env::var("CI").is_ok_and(|it| it == "true") {
                bail!("{} is not set: scripts/test brings the server and sets it", kind.variable());
            }
            return Ok(None);
        }
        let settings = settings.iter().map(|it| (*it).to_owned()).collect();
        let folder = tempfile::tempdir()?;
        let mut server = Self { kind, port: free_port()?, folder, settings, process: None };
        server.restart()?;
        Ok(Some(server))
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// More of its command line, from the next start on.
    pub(crate) fn set(&mut self, settings: &[&str]) {
        self.settings.extend(settings.iter().map(|it| (*it).to_owned()));
    }

    /// Starts it again, on the same port, with the same folder, and waits until it answers, be it with an error.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        self.kill()?;
        let program = std::env::var_os(self.kind.variable()).context("no program")?;
        let log = std::fs::File::create(self.folder.path().join("log"))?;
        let process = Command::new(program)
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--dir"])
            .arg(self.folder.path())
            .args(["--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"])
            .args(&self.settings)
            .stdin(Stdio::null())
            .stderr(log.try_clone()?)
            .stdout(log)
            .spawn()
            .with_context(|| format!("starting {:?}", self.kind))?;
        self.process = Some(process);
        self.until_it_answers()
    }

    /// It stands still, and its connections with it.
    pub(crate) fn freeze(&self) -> anyhow::Result<()> {
        self.signal("STOP")
    }

    pub(crate) fn thaw(&self) -> anyhow::Result<()> {
        self.signal("CONT")
    }

    /// Runs one command beside everything else, such as `SCRIPT FLUSH`, and returns the first line of its answer that
    /// is not a length.
    pub(crate) fn tell(&self, command: &str) -> anyhow::Result<String> {
        let answer = self.ask(command)?;
        ensure!(!answer.starts_with('-'), "{command}: {answer}");
        Ok(answer)
    }

    fn ask(&self, command: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        for line in BufReader::new(stream).lines() {
            let line = line?;
            if !line.starts_with(['$', '*']) {
                return Ok(line);
            }
        }
        bail!("{command}: no answer")
    }

    fn until_it_answers(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        // A server that wants a password answers too.
        while self.ask("PING").is_err() {
            let ended = self.process.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                let log = std::fs::read_to_string(self.folder.path().join("log"));
                bail!("{:?} ended with {status}: {}", self.kind, log.unwrap_or_default());
            }
            ensure!(begun.elapsed() < PATIENCE, "{:?} does not listen", self.kind);
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    fn signal(&self, name: &str) -> anyhow::Result<()> {
        let process = self.process.as_ref().context("it does not run")?;
        let command = format!("kill -{name} {}", process.id());
        ensure!(Command::new("sh").args(["-c", &command]).status()?.success(), "{command}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// From below the range of which the kernel gives ports to whoever connects: while a server is down, nobody gets its own.
fn free_port() -> anyhow::Result<u16> {
    const FROM: u32 = 20_000;
    const COUNT: u32 = 12_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..COUNT {
        // Relaxed: a number, no two threads get the same.
        let next = NEXT.fetch_add(1, Relaxed).wrapping_add(std::process::id().wrapping_mul(97));
        let port = u16::try_from(FROM + next % COUNT)?;
        if TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port")
}
