use std::error::Error;
use std::fmt;

use super::message::{Message, Reply};
use super::terms::Terms;

/// One message, and for which budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Order<'a> {
    /// The name of the budget: the same in all processes that share it.
    pub budget: &'a str,
    /// What they have agreed on. Processes with other terms share another pool, whatever the name.
    pub terms: Terms,
    /// What is told and asked.
    pub message: Message,
}

/// Where the pools are: a server, or memory.
///
/// # Contract
///
/// * All orders of one call go out together, and each has its own result, in the same order.
/// * A message reaches its pool once or not at all. After a timeout or a lost connection, when nobody
///   can know, it is **not** sent again: the result is [`StoreFailure::Unknown`], tokens are lost, and
///   none is made.
/// * It ends by itself, soon: within a quarter of a second.
/// * It tells people when it stops working, and when it works again: once, and not for each message.
/// * Dropped half-way, whatever was not answered counts as lost.
pub trait BudgetStore: Send + Sync + 'static {
    /// Delivers `orders`, and brings what the pools answer.
    fn exchange(
        &self,
        orders: &[Order<'_>],
    ) -> impl Future<Output = Vec<Result<Reply, StoreError>>> + Send;
}

/// What is known of a message that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreFailure {
    /// It never reached the store: what it carried is here still.
    Unsent,
    /// The store would not take it, and did nothing.
    Refused,
    /// It may have been carried out: what it carried is gone, and what it asked for too.
    Unknown,
}

/// Why a message was not answered.
#[derive(Debug)]
pub struct StoreError {
    failure: StoreFailure,
    source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// An error that leaves so much known.
    pub fn new(failure: StoreFailure, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { failure, source: source.into() }
    }

    /// What is known of the message.
    #[must_use]
    pub const fn failure(&self) -> StoreFailure {
        self.failure
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.failure {
            StoreFailure::Unsent => "the budget store could not be reached",
            StoreFailure::Refused => "the budget store refused",
            StoreFailure::Unknown => "the budget store did not answer",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
