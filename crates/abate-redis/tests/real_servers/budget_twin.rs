//! The script and its twin in Rust, bit for bit.

use std::time::Duration;

use abate_core::fleet::{Message, PoolCore, Reply, State, Terms};
use abate_core::ratio::Ratio;
use abate_core::rng::{Seed, Stream};
use abate_redis::Endpoint;
use abate_redis::link::{self, Call, Link, Script};
use anyhow::{Context, ensure};

use crate::support::{Kind, Server};

const OPERATIONS: u64 = 100_000;
const TOGETHER: usize = 100;

/// The script under a clock of ours.
const EXCHANGE: &str =
    concat!("local now = tonumber(ARGV[9])\n", include_str!("../../src/budget/exchange.lua"));

struct Operation {
    terms: Terms,
    now: u64,
    message: Message,
    forgets: bool,
}

impl Operation {
    fn call(&self) -> Call {
        let Message { deposit, calls, want, generation, epoch, .. } = self.message;
        let ratio = u64::from(self.terms.ratio().parts_per_billion());
        let terms = [ratio, self.terms.floor(), self.terms.tau()];
        let numbers = [terms.as_slice(), &[deposit, calls, want, generation, epoch, self.now]];
        let arguments = numbers.concat().iter().map(|it| it.to_string().into_bytes()).collect();
        Call { key: b"pool".to_vec(), arguments }
    }
}

/// A number of any size up to 2^`bits`.
fn any(stream: &mut Stream, bits: u64) -> u64 {
    let bits = stream.below(bits + 1);
    stream.below(1 << bits)
}

fn operation(stream: &mut Stream, terms: Terms, now: &mut u64, pool: Option<&State>) -> Operation {
    *now = match stream.below(1_000) {
        0 => stream.below(1 << 51),
        1..10 => now.saturating_sub(any(stream, 40)),
        10..20 => *now + any(stream, 34),
        _ => *now + any(stream, 22),
    };
    let known = stream.below(4) > 0;
    let joined = pool.filter(|_| known);
    let message = Message {
        number: 0,
        deposit: if stream.below(2) == 0 { any(stream, 50) } else { any(stream, 24) },
        calls: if stream.below(8) == 0 { any(stream, 50) } else { any(stream, 30) },
        want: any(stream, 30),
        generation: joined.map_or(0, |pool| pool.generation),
        epoch: joined.map_or_else(|| any(stream, 40), |pool| pool.epoch),
    };
    Operation { terms, now: *now, message, forgets: stream.below(500) == 0 }
}

#[tokio::test]
async fn the_script_and_its_twin_agree_bit_for_bit() -> anyhow::Result<()> {
    for kind in Kind::BOTH {
        let Some(server) = Server::start(kind, &[])? else { continue };
        let url = format!("redis://127.0.0.1:{}", server.port());
        let endpoint =
            Endpoint::new(&url, "twin")?.with_request_timeout(Duration::from_secs(10))?;
        let link = Link::new(endpoint);
        let (exchange, forget) =
            (Script::new(EXCHANGE), Script::new("return redis.call('DEL', KEYS[1])"));
        let get = Script::new("return redis.call('GET', KEYS[1])");
        let mut stream = Seed::new(6).stream(0);
        let mut terms = terms(&mut stream)?;
        let (mut pool, mut now) = (PoolCore::default(), 1_700_000_000_000_000);
        let (mut done, mut granted) = (0, 0);
        while done < OPERATIONS {
            let (mut calls, mut expected) = (Vec::new(), Vec::new());
            let mut forgets = false;
            while calls.len() < TOGETHER && !forgets {
                let operation = operation(&mut stream, terms, &mut now, pool.state());
                calls.push(operation.call());
                let reply = pool.exchange(&operation.terms, operation.now, &operation.message);
                granted += reply.grant;
                expected.push(reply);
                forgets = operation.forgets;
            }
            let answers = link.evaluate(&exchange, &calls).await?;
            for (answer, expected) in answers.iter().zip(&expected) {
                let answer = answer.as_ref().map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
                ensure!(*answer == fields(expected), "{kind:?}: {answer:?} for {expected:?}");
            }
            let call = Call { key: b"pool".to_vec(), arguments: vec![] };
            let kept = link.evaluate(&get, std::slice::from_ref(&call)).await?;
            let state = pool.state().context("a state")?;
            ensure!(kept == [Ok(link::Reply::Bytes(packed(state)))], "{kind:?}: {state:?}");
            if forgets {
                // Emptied, and begun anew with other terms.
                link.evaluate(&forget, &[call]).await?;
                pool.forget();
                terms = self::terms(&mut stream)?;
            }
            done += calls.len() as u64;
        }
        ensure!(granted > OPERATIONS / 100, "{granted} granted");
    }
    Ok(())
}

fn terms(stream: &mut Stream) -> anyhow::Result<Terms> {
    let ratio = Ratio::new(stream.below(1_000_000_001) as f64 / 1e9)?;
    let floor = if stream.below(5) == 0 { 0.0 } else { any(stream, 40) as f64 / 1e6 };
    Ok(Terms::new(ratio, floor.min(1e6))?)
}

fn fields(reply: &Reply) -> link::Reply {
    let Reply { grant, first, gap, stock, processes, epoch, generation, load, now } = *reply;
    let numbers = [grant, first, gap, stock, processes, epoch, generation, load, now];
    link::Reply::List(numbers.map(|number| link::Reply::Integer(number as i64)).into())
}

fn packed(state: &State) -> Vec<u8> {
    let State { stock, rate, level, load, at, generation, epoch, counted, before, .. } = *state;
    let numbers = [stock, rate, level, load, at, generation, epoch, counted, before];
    numbers.iter().flat_map(|number| (*number as f64).to_be_bytes()).collect()
}
