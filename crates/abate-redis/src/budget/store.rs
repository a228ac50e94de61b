use std::fmt;

use abate_core::fleet::{BudgetStore, Message, Order, Reply, StoreError, StoreFailure, Terms};

use super::pool::Pool;
use crate::endpoint::Endpoint;
use crate::link::{self, Call, Link, LinkError, Refusal, Script};

const EXCHANGE: &str = concat!(include_str!("clock.lua"), include_str!("exchange.lua"));
const INSPECT: &str = "return redis.call('GET', KEYS[1])";

/// The pools of a fleet's budgets, on a Redis or Valkey server.
///
/// Nothing is connected before the first exchange, and then in the background: a process starts with
/// the server down, and finds it when it is there. Each budget is one key of 72 bytes, which lives for
/// a minute; nothing is kept of the processes. A message is sent once, and never again after a timeout.
///
/// The user needs `EVALSHA`, `EVAL`, `GET`, `SET`, `TIME` and, to log in, `HELLO` and `CLIENT SETINFO`, on the
/// keys of the namespace: `ACL SETUSER abate on >secret ~shop:* +evalsha +eval +get +set +time +hello +client|setinfo`.
///
/// # Examples
///
/// ```
/// use abate_redis::{Endpoint, RedisStore};
///
/// let store = RedisStore::new(Endpoint::new("redis://localhost", "shop")?);
/// # drop(store);
/// # Ok::<_, abate_redis::EndpointError>(())
/// ```
#[derive(Clone)]
pub struct RedisStore {
    link: Link,
    exchange: Script,
    inspect: Script,
}

impl RedisStore {
    /// The pools on the server at `endpoint`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        let (exchange, inspect) = (Script::new(EXCHANGE), Script::new(INSPECT));
        Self { link: Link::new(endpoint), exchange, inspect }
    }

    /// What the pool of `budget` holds, for people to look at; `None` if no process has used it for a
    /// minute. Changes nothing.
    ///
    /// # Errors
    ///
    /// When the server does not answer, or refuses.
    pub async fn inspect(&self, budget: &str, terms: &Terms) -> Result<Option<Pool>, StoreError> {
        let call = Call { key: self.key(budget, terms), arguments: Vec::new() };
        match self.run(&self.inspect, &[call]).await.pop() {
            Some(Ok(link::Reply::Nil)) => Ok(None),
            Some(Ok(link::Reply::Bytes(packed))) => {
                Pool::unpack(&packed).map(Some).ok_or_else(garbled)
            }
            Some(Err(error)) => Err(error),
            Some(Ok(_)) | None => Err(garbled()),
        }
    }

    /// In braces what a cluster places it by. Processes with other terms have another pool, so that a
    /// change of terms, rolled out process by process, mixes nothing up.
    fn key(&self, budget: &str, terms: &Terms) -> Vec<u8> {
        let namespace = self.link.endpoint().namespace();
        let ratio = terms.ratio().parts_per_billion();
        let (floor, tau) = (terms.floor(), terms.tau());
        format!("{namespace}:{{{budget}}}:budget:{ratio}:{floor}:{tau}").into_bytes()
    }

    fn call(&self, order: &Order<'_>) -> Call {
        let Order { budget, terms, message } = order;
        let Message { deposit, calls, want, generation, epoch, .. } = *message;
        let numbers = [
            u64::from(terms.ratio().parts_per_billion()),
            terms.floor(),
            terms.tau(),
            deposit,
            calls,
            want,
            generation,
            epoch,
        ];
        let arguments = numbers.map(|number| number.to_string().into_bytes()).into();
        Call { key: self.key(budget, terms), arguments }
    }

    async fn run(&self, script: &Script, calls: &[Call]) -> Vec<Result<link::Reply, StoreError>> {
        match self.link.evaluate(script, calls).await {
            Ok(answers) => answers.into_iter().map(|answer| answer.map_err(refused)).collect(),
            Err(error) => calls.iter().map(|_| Err(failed(&error))).collect(),
        }
    }
}

impl BudgetStore for RedisStore {
    async fn exchange(&self, orders: &[Order<'_>]) -> Vec<Result<Reply, StoreError>> {
        let calls: Vec<_> = orders.iter().map(|order| self.call(order)).collect();
        let answers = self.run(&self.exchange, &calls).await;
        answers.into_iter().map(|answer| read(&answer?).ok_or_else(garbled)).collect()
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisStore").field(self.link.endpoint()).finish()
    }
}

fn read(answer: &link::Reply) -> Option<Reply> {
    let link::Reply::List(fields) = answer else { return None };
    let mut fields = fields.iter().map(|field| match field {
        link::Reply::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    });
    let mut next = || fields.next().flatten();
    Some(Reply {
        grant: next()?,
        first: next()?,
        gap: next()?,
        stock: next()?,
        processes: next()?,
        epoch: next()?,
        generation: next()?,
        load: next()?,
        now: next()?,
    })
}

fn refused(refusal: Refusal) -> StoreError {
    StoreError::new(StoreFailure::Refused, refusal.to_string())
}

fn failed(error: &LinkError) -> StoreError {
    let failure = match error {
        LinkError::Unsent(_) => StoreFailure::Unsent,
        LinkError::Unknown(_) => StoreFailure::Unknown,
    };
    StoreError::new(failure, error.clone())
}

fn garbled() -> StoreError {
    StoreError::new(StoreFailure::Unknown, "the script's answer is not one of its own")
}
