//! Every event that is told. One warning for each change of state, however many requests it concerns.

use std::fmt::Display;

pub(crate) fn store_down(store: &impl Display, cause: &impl Display) {
    tracing::warn!(%store, %cause, "the fleet's store is down: this process lives on what it earns itself");
}

pub(crate) fn store_up(store: &impl Display) {
    tracing::warn!(%store, "the fleet's store is up again");
}

pub(crate) fn not_connected(store: &impl Display, cause: &impl Display) {
    tracing::debug!(%store, %cause, "no connection to the fleet's store");
}
