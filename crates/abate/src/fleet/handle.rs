use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use abate_core::fleet::{BudgetStore, Terms};
use abate_core::policy::Policy;
use tokio::time::timeout;

use super::driver::Carrier;
use super::error::FleetError;
use super::members::Members;
use crate::budget::BudgetHandle;

/// How long the last exchange of a process may take.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_millis(100);

/// Budgets that this process shares with others through one store; clones are the same fleet.
///
/// Nothing is sent before [`Fleet::drive`] runs; until then, and whenever it does not run, each budget
/// goes by what this process earns. It may be made before there is a runtime, and while the store is down.
pub struct Fleet<S> {
    members: Arc<Members>,
    carrier: Arc<Carrier<S>>,
}

impl<S: BudgetStore> Fleet<S> {
    /// A fleet whose pools are in `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { members: Arc::default(), carrier: Arc::new(Carrier::new(store)) }
    }

    /// The budget that all processes know by `name`, with what `policy` says of costs and earning. Floor
    /// and ratio are those of `terms`, on which all processes must agree.
    ///
    /// Asked for twice it is the same one.
    ///
    /// # Errors
    ///
    /// [`FleetError`] when the name is empty, or taken by a budget with another policy or other terms,
    /// or when the fleet was shut down.
    pub fn budget(
        &self,
        name: &str,
        policy: impl Borrow<Policy>,
        terms: Terms,
    ) -> Result<BudgetHandle, FleetError> {
        self.members.join(name, policy.borrow().budget(), terms)
    }

    /// Carries the messages of all budgets, until [`Fleet::shutdown`]: to be spawned, once.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time, and driven again: what was on its way then counts as lost.
    pub fn drive(&self) -> impl Future<Output = ()> + Send + use<S> {
        Arc::clone(&self.carrier).drive(Arc::clone(&self.members))
    }

    /// Ends [`Fleet::drive`], and hands to the others what this process still holds. Takes at most
    /// [`FAREWELL_TIMEOUT`]. Retries go on afterwards with what this process earns.
    ///
    /// # Cancel safety
    ///
    /// Dropped half-way, what this process held may be lost.
    pub async fn shutdown(&self) {
        let farewells = self.members.farewells();
        let last = self.carrier.exchange(&self.members, farewells);
        // Too late is as good as lost: it is settled either way.
        let _ = timeout(FAREWELL_TIMEOUT, last).await;
    }
}

impl<S> Clone for Fleet<S> {
    fn clone(&self) -> Self {
        Self { members: Arc::clone(&self.members), carrier: Arc::clone(&self.carrier) }
    }
}

impl<S> fmt::Debug for Fleet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("budgets", &self.members).finish_non_exhaustive()
    }
}
