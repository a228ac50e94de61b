//! The server is there and says no.

use std::time::Duration;

use abate_redis::link::{Cause, LinkError};

use crate::support::{Kind, Rig, Server};

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_wrong_password_is_named_and_a_mended_one_lets_in() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let wanted = ["--user", "me", "on", ">wrong", "~*", "+@all"];
        let Some(rig) = Rig::start_as(kind, &wanted, "me:right@").await? else { continue };
        rig.until(|it| *it == Err(LinkError::Unsent(Cause::Login))).await?;
        assert!(!rig.told.lines().concat().contains("right"), "a password was told");
        rig.server.tell("ACL SETUSER me >right")?;
        let recovery = rig.until_it_counts().await?;
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("refused user or password")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_password_is_refused_on_a_connection_that_stays() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start_as(kind, &["--requirepass", "s"], "").await? else { continue };
        for _ in 0..5 {
            assert_eq!(rig.refusal().await?, "NOAUTH");
        }
        assert_eq!((rig.told.lines().len(), rig.proxy.connections()), (1, 1));
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_permission_is_told_once_and_makes_no_new_connection() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let user = ["--user", "me", "on", ">s", "~*", "+@all", "-evalsha"];
        let Some(rig) = Rig::start_as(kind, &user, "me:s@").await? else { continue };
        for _ in 0..20 {
            assert_eq!(rig.refusal().await?, "NOPERM");
        }
        rig.server.tell("ACL SETUSER me +evalsha")?;
        assert!(rig.until_it_counts().await? < SOON);
        assert_eq!(rig.proxy.connections(), 1);
        rig.down_and_up_once("NOPERM")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_full_server_is_told_once_and_makes_no_new_connection() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell("CONFIG SET maxmemory 1")?;
        for _ in 0..20 {
            assert_eq!(rig.refusal().await?, "OOM");
        }
        rig.server.tell("CONFIG SET maxmemory 0")?;
        assert!(rig.until_it_counts().await? < SOON);
        assert_eq!(rig.server.tell("GET count")?, "2", "what was refused did not run");
        assert_eq!(rig.proxy.connections(), 1);
        rig.down_and_up_once("OOM")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_without_its_replicas_is_told_once_and_makes_no_new_connection()
-> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell("CONFIG SET min-replicas-to-write 1")?;
        for _ in 0..5 {
            assert_eq!(rig.refusal().await?, "NOREPLICAS");
        }
        rig.server.tell("CONFIG SET min-replicas-to-write 0")?;
        assert!(rig.until_it_counts().await? < SOON);
        assert_eq!(rig.proxy.connections(), 1);
        rig.down_and_up_once("NOREPLICAS")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_demoted_primary_is_left_for_a_new_connection_and_serves_when_promoted()
-> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(primary) = Server::start(kind, &[])? else { continue };
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell(&format!("REPLICAOF 127.0.0.1 {}", primary.port()))?;
        rig.until(|it| matches!(it.as_deref(), Ok([Err(refusal)]) if refusal.code() == "READONLY"))
            .await?;
        rig.until(|_| rig.proxy.connections() > 1).await?;
        rig.server.tell("REPLICAOF NO ONE")?;
        let recovery = rig.until_it_counts().await?;
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("READONLY")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_replica_that_may_not_serve_old_data_is_left_for_a_new_connection() -> anyhow::Result<()>
{
    for kind in Kind::BOTH {
        let settings = ["--replica-serve-stale-data", "no"];
        let Some(rig) = Rig::start(kind, &settings).await? else { continue };
        rig.server.tell("REPLICAOF 127.0.0.1 1")?;
        assert_eq!(rig.refusal().await?, "MASTERDOWN");
        rig.until(|_| rig.proxy.connections() > 1).await?;
        rig.server.tell("REPLICAOF NO ONE")?;
        assert!(rig.until_it_counts().await? < SOON);
        rig.down_and_up_once("MASTERDOWN")?;
    }
    Ok(())
}

#[tokio::test]
async fn one_refused_key_does_not_take_the_others_answers() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.server.tell("SET b text")?;
        let answers = rig.ask(&["a", "b", "c"]).await??;
        assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(rig.told.lines().len(), 1);
    }
    Ok(())
}
