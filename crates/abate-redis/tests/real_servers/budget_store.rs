//! Processes that share a budget through a real server.

use std::time::{Duration, Instant};

use abate_core::budget::{Costs, Earn, Rules};
use abate_core::classify::Transient;
use abate_core::fleet::{BudgetStore, ClientCore, Message, Order, StoreFailure, Terms};
use abate_core::ratio::Ratio;
use abate_core::rng::Seed;
use abate_redis::{Endpoint, RedisStore};
use anyhow::{Context, ensure};

use crate::support::{Direction, Kind, Proxy, Server};

const NAME: &str = "payments";

fn terms(floor: f64) -> anyhow::Result<Terms> {
    Ok(Terms::new(Ratio::new(0.2)?, floor)?)
}

fn store(port: u16, namespace: &str) -> anyhow::Result<RedisStore> {
    Ok(RedisStore::new(Endpoint::new(&format!("redis://127.0.0.1:{port}"), namespace)?))
}

fn order(terms: Terms, deposit: u64, want: u64) -> Order<'static> {
    let message = Message { deposit: deposit * 1_000_000, want, ..Message::default() };
    Order { budget: NAME, terms, message }
}

async fn tokens(store: &RedisStore, terms: &Terms) -> anyhow::Result<f64> {
    let pool = store.inspect(NAME, terms).await?;
    Ok(pool.map_or(0.0, |pool| pool.tokens))
}

#[tokio::test]
async fn what_one_process_hands_over_another_one_gets() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let (one, other) = (store(server.port(), "shop")?, store(server.port(), "shop")?);
        let stranger = store(server.port(), "other")?;
        let terms = terms(0.0)?;
        ensure!(one.inspect(NAME, &terms).await?.is_none());
        let replies = one.exchange(&[order(terms, 100, 0), order(terms, 0, 0)]).await;
        ensure!(replies.len() == 2 && replies.iter().all(Result::is_ok), "{replies:?}");
        let reply = other.exchange(&[order(terms, 0, 5)]).await.pop().context("a reply")??;
        ensure!(reply.grant == 1, "one at once, for nobody has called: {reply:?}");
        let left = tokens(&other, &terms).await?;
        ensure!((98.0..=99.0).contains(&left), "{left}");
        ensure!(stranger.inspect(NAME, &terms).await?.is_none(), "another namespace");
        let others = Terms::new(Ratio::new(0.3)?, 0.0)?;
        ensure!(one.inspect(NAME, &others).await?.is_none(), "other terms");
        let shown = one.inspect(NAME, &terms).await?.context("a pool")?.to_string();
        ensure!(shown.contains(" tokens, 3 processes, "), "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn whole_clients_move_tokens_through_it() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let store = store(server.port(), "shop")?;
        let (costs, ratio) = (Costs::ONE, Ratio::ZERO);
        let rules =
            Rules { ratio, earn: Earn::PerSuccess, costs, floor: 0.0, start: 0.0, burst: 1 };
        let now = Instant::now();
        let mut well = ClientCore::new(rules, terms(0.0)?, Seed::new(1), now);
        let mut ill = ClientCore::new(rules, terms(0.0)?, Seed::new(2), now);
        for _ in 0..1_000 {
            well.budget().count_call(now);
            well.budget().earn();
        }
        exchange(&store, &mut well, now + Duration::from_millis(1_200)).await?;
        let mut grant = ill
            .budget()
            .grant(now, Duration::ZERO, Duration::MAX, Transient::Server)
            .ok()
            .context("a ticket")?;
        exchange(&store, &mut ill, now).await?;
        let later = now + Duration::from_millis(100);
        ensure!(grant.slot(later, Duration::MAX) == Ok(Duration::ZERO), "{grant:?}");
        grant.sent();
        ensure!(ill.processes() == 2);
    }
    Ok(())
}

/// Carries one message of `client`.
async fn exchange(store: &RedisStore, client: &mut ClientCore, now: Instant) -> anyhow::Result<()> {
    let message = client.message(now).context("a message")?;
    let order = Order { budget: NAME, terms: *client.terms(), message };
    let reply = store.exchange(&[order]).await.pop().context("a reply")??;
    client.answered(message.number, &reply, now);
    Ok(())
}

#[tokio::test]
async fn a_message_that_had_no_answer_is_never_sent_again() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let proxy = Proxy::start(server.port()).await?;
        let (through, direct) = (store(proxy.port(), "shop")?, store(server.port(), "shop")?);
        let terms = terms(0.0)?;
        ensure!(through.exchange(&[order(terms, 0, 0)]).await.iter().all(Result::is_ok));
        proxy.swallow(Direction::Replies);
        let lost = through.exchange(&[order(terms, 100, 0)]).await.pop().context("a result")?;
        let failure = lost.err().map(|error| error.failure());
        ensure!(failure == Some(StoreFailure::Unknown), "{failure:?}");
        proxy.heal();
        let begun = Instant::now();
        while through.exchange(&[order(terms, 0, 0)]).await.iter().any(Result::is_err) {
            ensure!(begun.elapsed() < Duration::from_secs(20), "never back");
        }
        let held = tokens(&direct, &terms).await?;
        ensure!((90.0..=100.0).contains(&held), "{held}: once, and it fades");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_refuses_has_done_nothing_and_says_why() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &["--maxmemory", "1"])? else { continue };
        let store = store(server.port(), "shop")?;
        let terms = terms(10.0)?;
        let error = store.exchange(&[order(terms, 5, 0)]).await.pop().context("a result")?.err();
        let error = error.context("out of memory")?;
        ensure!(error.failure() == StoreFailure::Refused, "{error:?}");
        let cause = std::error::Error::source(&error).context("a cause")?.to_string();
        ensure!(cause.contains("OOM"), "{cause}");
        server.tell("CONFIG SET maxmemory 0")?;
        ensure!(store.inspect(NAME, &terms).await?.is_none());
        let reply = store.exchange(&[order(terms, 5, 0)]).await.pop().context("a result")??;
        ensure!(reply.stock == 15_000_000, "{reply:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_was_emptied_counts_its_processes_anew() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let store = store(server.port(), "shop")?;
        let terms = terms(10.0)?;
        let before = store.exchange(&[order(terms, 900, 0)]).await.pop().context("a result")??;
        server.tell("FLUSHALL")?;
        let after = store.exchange(&[order(terms, 0, 0)]).await.pop().context("a result")??;
        ensure!(after.generation != before.generation && after.stock == 10_000_000, "{after:?}");
        server.tell("SCRIPT FLUSH")?;
        ensure!(store.exchange(&[order(terms, 0, 0)]).await.iter().all(Result::is_ok));
    }
    Ok(())
}
