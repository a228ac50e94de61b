//! Pools in memory, on tokio's clock, in any weather.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use abate::decisions::fleet::PoolCore;
use abate::fleet::{BudgetStore, Order, Reply, StoreError, StoreFailure};
use tokio::time::{Instant, sleep};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Weather {
    Fair,
    /// Nothing is done, and that is known.
    Fails(StoreFailure),
    /// Done, but nobody hears of it.
    Hangs,
    /// Fewer answers than orders.
    Mute,
}

#[derive(Clone)]
pub(crate) struct Memory(Arc<Mutex<Pools>>);

pub(crate) struct Pools {
    began: Instant,
    pub(crate) weather: Weather,
    pub(crate) latency: Duration,
    pub(crate) exchanges: usize,
    /// The most orders in one exchange.
    pub(crate) together: usize,
    pub(crate) open: usize,
    pub(crate) most_open: usize,
    pools: HashMap<String, PoolCore>,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Pools {
            began: Instant::now(),
            weather: Weather::Fair,
            latency: Duration::from_millis(2),
            exchanges: 0,
            together: 0,
            open: 0,
            most_open: 0,
            pools: HashMap::new(),
        })))
    }

    pub(crate) fn pools(&self) -> MutexGuard<'_, Pools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn turns(&self, weather: Weather) {
        self.pools().weather = weather;
    }

    pub(crate) fn stock(&self, budget: &str) -> f64 {
        let pools = self.pools();
        let state = pools.pools.get(budget).and_then(PoolCore::state);
        state.map_or(0.0, |state| state.stock as f64 / 1e6)
    }
}

impl BudgetStore for Memory {
    async fn exchange(&self, orders: &[Order<'_>]) -> Vec<Result<Reply, StoreError>> {
        let (latency, weather) = {
            let mut pools = self.pools();
            pools.exchanges += 1;
            pools.together = pools.together.max(orders.len());
            pools.open += 1;
            pools.most_open = pools.most_open.max(pools.open);
            (pools.latency, pools.weather)
        };
        let _open = Open(self);
        sleep(latency).await;
        if let Weather::Fails(failure) = weather {
            return orders.iter().map(|_| Err(StoreError::new(failure, "bad weather"))).collect();
        }
        let replies: Vec<_> = {
            let mut pools = self.pools();
            let now = pools.began.elapsed().as_micros() as u64;
            let answer = |order: &Order<'_>| {
                let pool = pools.pools.entry(order.budget.to_owned()).or_default();
                Ok(pool.exchange(&order.terms, now, &order.message))
            };
            orders.iter().map(answer).collect()
        };
        match weather {
            Weather::Hangs => pending().await,
            Weather::Mute => Vec::new(),
            _ => replies,
        }
    }
}

struct Open<'a>(&'a Memory);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.pools().open -= 1;
    }
}
