//! May this request be sent twice?
//!
//! [`Rules`] judge a request before its first attempt, a [`Safety`] judges each outcome. A
//! [`Key`] makes a repeat harmless where the server deduplicates by it.

mod key;
mod rules;

pub use self::key::{IDEMPOTENCY_KEY, Key, Keys};
pub use self::rules::{Idempotent, NonIdempotent, Rule, Rules, Safety};
