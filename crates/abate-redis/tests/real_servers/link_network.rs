//! The network between fails, in each of its ways.

use std::time::{Duration, Instant};

use abate_redis::link::{Cause, LinkError};

use crate::support::{Direction, Kind, Rig};

const SOON: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_black_hole_is_left_within_a_second_of_the_second_timeout() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        for direction in [Direction::Requests, Direction::Replies, Direction::Both] {
            let Some(rig) = Rig::start(kind, &[]).await? else { continue };
            rig.proxy.swallow_present(direction);
            for _ in 0..2 {
                assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
            }
            let recovery = rig.until_it_counts().await?;
            assert!(recovery < SOON, "{kind:?}, {direction:?}: {recovery:?}");
            rig.down_and_up_once("no answer in time")?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn what_vanished_on_its_way_back_has_run_and_is_not_sent_again() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.proxy.swallow_present(Direction::Replies);
        assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
        assert_eq!(rig.server.tell("GET count")?, "2");
        rig.proxy.heal();
        assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
        rig.until_it_counts().await?;
        assert_eq!(rig.server.tell("GET count")?, "4", "a lost request was sent again");
    }
    Ok(())
}

#[tokio::test]
async fn a_hole_that_takes_new_connections_too_is_found_closed_soon_after() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.proxy.swallow(Direction::Both);
        rig.until(|it| matches!(it, Err(LinkError::Unsent(Cause::Timeout)))).await?;
        rig.proxy.heal();
        let begun = Instant::now();
        rig.until_it_counts().await?;
        // The attempt that fell into the hole ends with the connect timeout, and the next begins within as long again.
        assert!(begun.elapsed() < 2 * SOON, "{kind:?}: {:?}", begun.elapsed());
        rig.down_and_up_once("no answer in time")?;
    }
    Ok(())
}

#[tokio::test]
async fn a_reset_amid_a_reply_leaves_the_outcome_unknown_and_runs_nothing_twice()
-> anyhow::Result<()> {
    for kind in Kind::BOTH {
        for bytes in [0, 1, 5] {
            let Some(rig) = Rig::start(kind, &[]).await? else { continue };
            rig.proxy.cut_replies_after(bytes);
            assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Dropped)), "{bytes}");
            rig.proxy.heal();
            let recovery = rig.until_it_counts().await?;
            assert!(recovery < SOON, "{kind:?}: {recovery:?}");
            assert_eq!(rig.server.tell("GET count")?, "3");
            rig.down_and_up_once("the connection was closed")?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn refused_connections_are_found_again_within_a_second() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.proxy.refuse();
        rig.server.tell("CLIENT KILL TYPE normal")?;
        rig.until(|it| matches!(it, Err(LinkError::Unsent(Cause::Unreachable(_))))).await?;
        rig.proxy.heal();
        let recovery = rig.until_it_counts().await?;
        assert!(recovery < SOON, "{kind:?}: {recovery:?}");
        rig.down_and_up_once("")?;
        assert_eq!(rig.proxy.connections(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn a_slow_network_is_no_outage_until_it_is_too_slow() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        rig.proxy.delay(Duration::from_millis(30));
        let begun = Instant::now();
        assert_eq!(rig.count().await?, Ok(2));
        assert!(begun.elapsed() >= Duration::from_millis(60));
        rig.proxy.delay(Duration::from_millis(200));
        assert_eq!(rig.count().await?, Err(LinkError::Unknown(Cause::Timeout)));
        rig.proxy.heal();
        assert!(rig.until_it_counts().await? < SOON);
        assert!(rig.told.lines().is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn many_who_ask_at_once_are_served_one_after_the_other() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(rig) = Rig::start(kind, &[]).await? else { continue };
        let counts = tokio::join!(rig.count(), rig.count(), rig.count(), rig.count());
        let mut counts = [counts.0??, counts.1??, counts.2??, counts.3??];
        counts.sort_unstable();
        assert_eq!(counts, [2, 3, 4, 5]);
    }
    Ok(())
}
