use std::fmt;
use std::sync::Once;

use abate_core::safety::{IDEMPOTENCY_KEY, Keys};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method};

use crate::context::Attempt;
use crate::observe;

/// A request was to get a key, and none could be made.
pub(super) struct NoKey;

/// Which requests get a key, and what it looks like.
pub(super) struct Terms {
    pub(super) header: HeaderName,
    pub(super) rule: fn(&Parts) -> bool,
    /// What makes the keys, if they are not random.
    pub(super) own: Option<fn(&Parts) -> Option<HeaderValue>>,
    pub(super) keys: Keys,
    pub(super) quoted: bool,
    pub(super) visible: bool,
    misplaced: Once,
}

impl Terms {
    pub(super) fn new() -> Self {
        Self {
            header: IDEMPOTENCY_KEY,
            rule: |head| [Method::POST, Method::PATCH].contains(&head.method),
            own: None,
            keys: Keys::random(),
            quoted: false,
            visible: false,
            misplaced: Once::new(),
        }
    }

    /// The same terms for another layer.
    pub(super) fn anew(&self) -> Self {
        let Self { header, rule, own, keys, quoted, visible, misplaced: _ } = self;
        Self {
            header: header.clone(),
            rule: *rule,
            own: *own,
            keys: keys.anew(),
            quoted: *quoted,
            visible: *visible,
            misplaced: Once::new(),
        }
    }

    /// Gives a request its key, if it is to get one here.
    pub(super) fn put_key(&self, head: &mut Parts) -> Result<(), NoKey> {
        if !(self.rule)(head) || head.headers.contains_key(&self.header) {
            return Ok(());
        }
        if Attempt::current().is_some() || head.extensions.get::<Attempt>().is_some() {
            // What is made here differs from attempt to attempt, and a server would take each for
            // an operation of its own. Without a key a retry of ours repeats only what was refused.
            self.misplaced.call_once(observe::key_below_retry);
            return Ok(());
        }
        let mut key = self.key(head).ok_or(NoKey)?;
        if !self.visible {
            key.set_sensitive(true);
        }
        head.headers.insert(self.header.clone(), key);
        Ok(())
    }

    fn key(&self, head: &Parts) -> Option<HeaderValue> {
        if let Some(own) = self.own {
            return own(head);
        }
        let key = self.keys.next()?;
        HeaderValue::from_bytes(if self.quoted { key.quoted() } else { key.bare() }).ok()
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms")
            .field("header", &self.header)
            .field("own", &self.own.is_some())
            .field("quoted", &self.quoted)
            .field("visible", &self.visible)
            .finish_non_exhaustive()
    }
}
