use std::time::{Duration, Instant};

use abate_redis::Endpoint;
use abate_redis::link::{Call, Link, LinkError, Refusal, Reply, Script};
use anyhow::{bail, ensure};

use super::{Kind, Proxy, Server, Told};

/// A request takes 250 ms at the most; the rest is for a machine that does other things too.
const LONGEST: Duration = Duration::from_millis(250 + 250);

/// A link through a network to a server, and what it has told.
pub(crate) struct Rig {
    pub server: Server,
    pub proxy: Proxy,
    pub link: Link,
    pub told: Told,
    script: Script,
}

type Answers = Result<Vec<Result<Reply, Refusal>>, LinkError>;

impl Rig {
    /// One that has answered once; `None` where there is no such server on this machine.
    pub(crate) async fn start(kind: Kind, settings: &[&str]) -> anyhow::Result<Option<Self>> {
        let Some(rig) = Self::start_as(kind, settings, "").await? else {
            return Ok(None);
        };
        ensure!(rig.count().await? == Ok(1), "the first request found no server");
        Ok(Some(rig))
    }

    /// One that has asked nothing yet, and logs in with `login`, as in `user:password@`.
    pub(crate) async fn start_as(
        kind: Kind,
        settings: &[&str],
        login: &str,
    ) -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(kind, settings)? else {
            return Ok(None);
        };
        let proxy = Proxy::start(server.port()).await?;
        let url = format!("redis://{login}127.0.0.1:{}", proxy.port());
        let link = Link::new(Endpoint::new(&url, "test")?);
        Ok(Some(Self { server, proxy, link, told: Told::listen(), script: counting() }))
    }

    /// Runs the script for `keys`, and sees to it that nobody waits for longer than promised.
    pub(crate) async fn ask(&self, keys: &[&str]) -> anyhow::Result<Answers> {
        let calls: Vec<_> = keys.iter().map(|key| call(key)).collect();
        let begun = Instant::now();
        let answers = self.link.evaluate(&self.script, &calls).await;
        ensure!(begun.elapsed() < LONGEST, "pending for {:?}: {answers:?}", begun.elapsed());
        Ok(answers)
    }

    /// Counts one up at the server.
    pub(crate) async fn count(&self) -> anyhow::Result<Result<i64, LinkError>> {
        match self.ask(&["count"]).await? {
            Ok(answers) => match answers.as_slice() {
                [Ok(Reply::List(list))] => match list.as_slice() {
                    [Reply::Integer(count), Reply::Bytes(_)] => Ok(Ok(*count)),
                    other => bail!("{other:?}"),
                },
                other => bail!("{other:?}"),
            },
            Err(error) => Ok(Err(error)),
        }
    }

    /// The code with which the server refuses to count.
    pub(crate) async fn refusal(&self) -> anyhow::Result<String> {
        match self.ask(&["count"]).await?.as_deref() {
            Ok([Err(refusal)]) => Ok(refusal.code().to_owned()),
            other => bail!("not refused: {other:?}"),
        }
    }

    /// Asks again and again until there is an answer; how long that took.
    pub(crate) async fn until_it_counts(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.until(|answers| matches!(answers, Ok(all) if all.iter().all(Result::is_ok))).await?;
        Ok(begun.elapsed())
    }

    /// Asks again and again until the answer is as `wanted`.
    pub(crate) async fn until(
        &self,
        mut wanted: impl FnMut(&Answers) -> bool,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let answers = self.ask(&["count"]).await?;
            if wanted(&answers) {
                return Ok(());
            }
            ensure!(begun.elapsed() < Duration::from_secs(20), "still {answers:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// It was told once that the store is down, with a reason that has `reason` in it, and once that it is up again.
    pub(crate) fn down_and_up_once(&self, reason: &str) -> anyhow::Result<()> {
        let lines = self.told.lines();
        let [down, up] = lines.as_slice() else { bail!("told: {lines:#?}") };
        ensure!(down.contains("store is down") && down.contains(reason), "{down}");
        ensure!(up.contains("store is up again"), "{up}");
        Ok(())
    }
}

/// Counts one up, in its last step, and returns the count and the server's time.
pub(crate) fn counting() -> Script {
    Script::new("local now = redis.call('TIME')[1] return {redis.call('INCR', KEYS[1]), now}")
}

pub(crate) fn call(key: &str) -> Call {
    Call { key: key.into(), arguments: Vec::new() }
}
