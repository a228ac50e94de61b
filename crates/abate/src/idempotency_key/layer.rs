use std::sync::Arc;

use abate_core::rng::Seed;
use abate_core::safety::Keys;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use tower_layer::Layer;

use super::IdempotencyKey;
use super::terms::Terms;

/// Gives requests an idempotency key; see the [module](crate::idempotency_key).
#[derive(Debug, Clone)]
pub struct IdempotencyKeyLayer {
    terms: Arc<Terms>,
}

impl IdempotencyKeyLayer {
    /// Gives each POST and PATCH an `Idempotency-Key` of its own, unless it has one.
    #[must_use]
    pub fn new() -> Self {
        Self { terms: Arc::new(Terms::new()) }
    }

    /// Gives a key to the requests for which `rule` is true, and to no others.
    ///
    /// # Examples
    ///
    /// ```
    /// use abate::IdempotencyKeyLayer;
    /// use http::Method;
    ///
    /// let layer = IdempotencyKeyLayer::new()
    ///     .with_rule(|head| head.method == Method::POST && head.uri.path().starts_with("/payments"));
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn with_rule(self, rule: fn(&Parts) -> bool) -> Self {
        self.changed(|terms| terms.rule = rule)
    }

    /// Takes the key that `key` makes, as it is, such as a hash of what the operation is about. Put
    /// what it needs, and the body has, into the request's extensions.
    ///
    /// It must be the same whenever the same operation is called, and another one for each other
    /// operation: nothing that changes by itself, such as the time or a token that is renewed, goes
    /// into it. With `None` the call is refused; which requests get no key is the
    /// [rule's](Self::with_rule) to say.
    ///
    /// # Examples
    ///
    /// ```
    /// use abate::IdempotencyKeyLayer;
    /// use http::HeaderValue;
    ///
    /// #[derive(Clone)]
    /// struct OrderId(u64);
    ///
    /// let layer = IdempotencyKeyLayer::new().with_key(|head| {
    ///     let OrderId(id) = head.extensions.get()?;
    ///     HeaderValue::try_from(format!("order-{id}")).ok()
    /// });
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn with_key(self, key: fn(&Parts) -> Option<HeaderValue>) -> Self {
        self.changed(|terms| terms.own = Some(key))
    }

    /// Sends the key in the header `name`, and keeps what the caller has put there.
    ///
    /// A retry takes only `Idempotency-Key` for a key. Of another it is told by its policy:
    ///
    /// ```
    /// use abate::{IdempotencyKeyLayer, Policy};
    /// use http::HeaderName;
    ///
    /// let layer =
    ///     IdempotencyKeyLayer::new().with_header(HeaderName::from_static("paypal-request-id"));
    /// let policy = Policy::builder()
    ///     .with_idempotent(|head| head.headers.contains_key("paypal-request-id").then_some(true))
    ///     .build()?;
    /// # drop((layer, policy));
    /// # Ok::<(), abate::PolicyError>(())
    /// ```
    #[must_use]
    pub fn with_header(self, name: HeaderName) -> Self {
        self.changed(|terms| terms.header = name)
    }

    /// Puts the random keys in quotes, for servers that go by the draft: there the header is a
    /// structured field (RFC 9651), and its value a string.
    #[must_use]
    pub fn quoted(self) -> Self {
        self.changed(|terms| terms.quoted = true)
    }

    /// Lets the keys be seen in `Debug` output, such as the headers that a tracing layer logs. They
    /// are else marked as [sensitive](HeaderValue::set_sensitive), which also keeps them out of
    /// HTTP/2's table of headers, where values that are used once only take the place of others.
    ///
    /// A key that [a function made](Self::with_key) is then as sensitive as that has marked it; the
    /// caller's own always is.
    #[must_use]
    pub fn visible(self) -> Self {
        self.changed(|terms| terms.visible = true)
    }

    /// Makes the same keys in every run: for tests alone. A server that remembers them takes the
    /// operations of the next run for repeats.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        self.changed(|terms| terms.keys = Keys::seeded(Seed::new(seed)))
    }

    fn changed(self, change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = self.terms.anew();
        change(&mut terms);
        Self { terms: Arc::new(terms) }
    }
}

impl Default for IdempotencyKeyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for IdempotencyKeyLayer {
    type Service = IdempotencyKey<S>;

    fn layer(&self, inner: S) -> IdempotencyKey<S> {
        IdempotencyKey::new(inner, Arc::clone(&self.terms))
    }
}
