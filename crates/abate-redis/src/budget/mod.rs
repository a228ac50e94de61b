//! The pools of a fleet's budgets, each in one key.

mod pool;
mod store;

pub use pool::Pool;
pub use store::RedisStore;
