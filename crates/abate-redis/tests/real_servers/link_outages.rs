//! The server goes, and comes back.

use std::time::{Duration, Instant};

use abate_redis::Endpoint;
use abate_redis::link::{Cause, Link, LinkError};

use crate::support::{Kind, Rig, Server, call, counting};

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_process_starts_with_the_store_down_and_finds_it_later() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(mut rig) = Rig::start_as(kind, &[], "").await? else { continue };
        rig.server.kill()?;
        rig.proxy.refuse();
        rig.until(|it| matches!(it, Err(LinkError::Unsent(Cause::Unreachable(_))))).await?;
        rig.server.restart()?;
        rig.proxy.heal();
        assert!(rig.until_it_counts().await? < SOON);
        rig.down_and_up_once("cannot connect: connection refused")?;
    }
    Ok(())
}

#[test]
fn a_link_needs_no_runtime_before_it_is_used() {
    let endpoint = Endpoint::new("redis://127.0.0.1:1", "test").unwrap();
    let link = Link::new(endpoint);
    assert!(format!("{link:?}").contains("127.0.0.1:1/0"));
}

#[test]
fn a_link_outlives_the_runtime_that_it_was_used_in() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let url = format!("redis://127.0.0.1:{}", server.port());
        let link = Link::new(Endpoint::new(&url, "test")?);
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let answers = runtime.block_on(link.evaluate(&counting(), &[call("count")]));
            assert!(answers?[0].is_ok());
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_server_that_is_restarted_is_found_within_a_second() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(mut rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.kill()?;
        rig.proxy.refuse();
        rig.until(|it| matches!(it, Err(LinkError::Unsent(Cause::Unreachable(_))))).await?;
        rig.server.restart()?;
        rig.proxy.heal();
        let recovery = rig.until_it_counts().await?;
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_frozen_server_costs_two_timeouts_and_is_back_when_it_thaws() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.freeze()?;
        let begun = Instant::now();
        assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
        assert!(begun.elapsed() >= Duration::from_millis(250));
        assert!(rig.told.lines().is_empty(), "one slow answer is no outage");
        assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
        assert_eq!(rig.told.lines().len(), 1);
        assert!(matches!(rig.count().await?, Err(LinkError::Unsent(_))));
        rig.server.thaw()?;
        let recovery = rig.until_it_counts().await?;
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("no answer in time")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_paused_server_is_back_when_the_pause_ends() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        let begun = Instant::now();
        rig.server.tell("CLIENT PAUSE 1000")?;
        rig.until(|_| rig.told.lines().len() == 1).await?;
        rig.until_it_counts().await?;
        let recovery = begun.elapsed().saturating_sub(Duration::from_secs(1));
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("no answer in time")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_waited_for_on_one_connection() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(mut rig) = Rig::start(kind, &["--dbfilename", "dump"]).await? else { continue };
        rig.server.tell("EVAL \"for i=1,500 do redis.call('SET',i,i) end return 1\" 0")?;
        rig.server.tell("SAVE")?;
        // A millisecond for each key, and a look at connections in between.
        let slowly =
            ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"];
        rig.server.set(&slowly);
        rig.server.restart()?;
        let mut loading = false;
        rig.until(|it| {
            loading |= matches!(it.as_deref(), Ok([Err(refusal)]) if refusal.code() == "LOADING");
            matches!(it.as_deref(), Ok([Ok(_)]))
        })
        .await?;
        assert!(loading, "{kind:?} loaded too fast to be seen");
        assert_eq!(rig.server.tell("GET count")?, "2");
        assert_eq!(rig.proxy.connections(), 2);
        rig.down_and_up_once("")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_gets_them_again_and_runs_each_once() -> anyhow::Result<()>
{
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell("SCRIPT FLUSH")?;
        let answers = rig.ask(&["a", "b", "a"]).await??;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(rig.server.tell("GET a")?, "2");
        assert_eq!(rig.server.tell("GET b")?, "1");
        assert!(rig.told.lines().is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn a_connection_that_the_server_closes_while_idle_is_made_anew_unasked() -> anyhow::Result<()>
{
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell("CLIENT KILL TYPE normal")?;
        let begun = Instant::now();
        while rig.proxy.connections() < 2 {
            assert!(begun.elapsed() < SOON, "no new connection");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(rig.count().await?, Ok(2));
        assert!(rig.told.lines().is_empty());
    }
    Ok(())
}
