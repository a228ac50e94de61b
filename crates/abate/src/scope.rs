//! State by key: one for all calls, or one for each dependency that a request names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use http::uri::Authority;
use http::{Extensions, HeaderMap, Method, Request, Uri};

/// The most keys that are kept: far more dependencies than a service has, and few enough that an
/// attacker who chooses host names fills no memory.
pub const MOST_KEYS: usize = 1024;

/// A key that was not used for this long is forgotten when another one comes: ten minutes, which
/// is longer than anything that is remembered under it lasts.
pub const IDLE: Duration = Duration::from_secs(10 * 60);

/// Which calls share a layer's state.
///
/// # Examples
///
/// A breaker for each authority, and one for each tenant:
///
/// ```
/// use abate::{CircuitBreakerLayer, Policy, Scope};
///
/// #[derive(Clone)]
/// struct Tenant(String);
///
/// let policy = Policy::default();
/// let by_host = CircuitBreakerLayer::new(&policy).with_scope(Scope::PerAuthority);
/// let by_tenant = CircuitBreakerLayer::new(&policy).with_scope(Scope::By(|head| {
///     head.extensions.get::<Tenant>().map_or("", |tenant| tenant.0.as_str())
/// }));
/// # drop((by_host, by_tenant));
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub enum Scope {
    /// All of them: for a service in front of one dependency.
    #[default]
    Shared,
    /// Those to the same authority (host and port): for a client that calls many.
    PerAuthority,
    /// Those for which this gives the same key.
    By(for<'a> fn(Head<'a>) -> &'a str),
}

/// What a key may be taken from.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The URI.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The extensions.
    pub extensions: &'a Extensions,
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may be secret.
        f.debug_struct("Head")
            .field("method", &self.method)
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl Scope {
    /// The key of a request; `None` where all share one state.
    #[inline]
    pub(crate) fn key<'a, B>(&self, request: &'a Request<B>) -> Option<Cow<'a, str>> {
        match self {
            Self::Shared => None,
            Self::PerAuthority => {
                Some(lower(request.uri().authority().map_or("", Authority::as_str)))
            }
            Self::By(key) => Some(Cow::Borrowed(key(Head {
                method: request.method(),
                uri: request.uri(),
                headers: request.headers(),
                extensions: request.extensions(),
            }))),
        }
    }
}

/// Hosts are the same in either case (RFC 9110 section 4.2.3).
fn lower(authority: &str) -> Cow<'_, str> {
    if authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(authority.to_ascii_lowercase())
    } else {
        Cow::Borrowed(authority)
    }
}

/// A value for each key, made when the key is first seen, bounded in number.
///
/// Looking one up takes no lock; a key that is new copies the map, which is small and rare.
pub(crate) struct Keyed<T> {
    entries: ArcSwap<HashMap<Arc<str>, Arc<Entry<T>>>>,
    /// Held while the map is replaced.
    writing: Mutex<()>,
    base: Instant,
}

struct Entry<T> {
    value: T,
    /// Seconds from the base to the last use.
    used: AtomicU64,
}

impl<T: Clone> Keyed<T> {
    pub(crate) fn new(now: Instant) -> Self {
        Self { entries: ArcSwap::default(), writing: Mutex::new(()), base: now }
    }

    /// The value of `key`, which `make` makes if there is none yet.
    pub(crate) fn get(&self, key: &str, now: Instant, make: impl FnOnce() -> T) -> T {
        let second = now.saturating_duration_since(self.base).as_secs();
        match self.entries.load().get(key) {
            Some(entry) => {
                // Relaxed: a figure for itself. Written once a second at most, so that a key in
                // use does not bounce between cores.
                if entry.used.load(Relaxed) != second {
                    // Relaxed: a figure for itself.
                    entry.used.store(second, Relaxed);
                }
                entry.value.clone()
            }
            None => self.insert(key, second, make),
        }
    }

    /// The value of a key that was seen already.
    pub(crate) fn find(&self, key: &str) -> Option<T> {
        self.entries.load().get(key).map(|entry| entry.value.clone())
    }

    /// All there are, those included that were on their way in when it was asked.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, T)> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = self.entries.load();
        entries.iter().map(|(key, entry)| (Arc::clone(key), entry.value.clone())).collect()
    }

    #[cold]
    fn insert(&self, key: &str, second: u64, make: impl FnOnce() -> T) -> T {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.find(key) {
            return value;
        }
        let mut entries = HashMap::clone(&self.entries.load());
        if entries.len() >= MOST_KEYS {
            make_room(&mut entries, second);
        }
        let value = make();
        let entry = Entry { value: value.clone(), used: AtomicU64::new(second) };
        entries.insert(key.into(), Arc::new(entry));
        self.entries.store(Arc::new(entries));
        value
    }
}

/// Forgets the idle keys, or else the one that was idle longest.
fn make_room<T>(entries: &mut HashMap<Arc<str>, Arc<Entry<T>>>, second: u64) {
    // Relaxed: a figure for itself.
    let used = |entry: &Arc<Entry<T>>| entry.used.load(Relaxed);
    entries.retain(|_, entry| second.saturating_sub(used(entry)) < IDLE.as_secs());
    if entries.len() >= MOST_KEYS {
        let oldest = entries.iter().min_by_key(|(_, entry)| used(entry));
        if let Some(key) = oldest.map(|(key, _)| Arc::clone(key)) {
            entries.remove(&key);
        }
    }
}

impl<T> fmt::Debug for Keyed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("keys", &self.entries.load().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock;

    #[test]
    fn a_key_keeps_its_value() {
        let now = clock::now();
        let keyed = Keyed::new(now);
        assert_eq!(keyed.get("a", now, || 1), 1);
        assert_eq!(keyed.get("b", now, || 2), 2);
        assert_eq!(keyed.get("a", now, || panic!("it is there")), 1);
        assert_eq!(keyed.find("c"), None);
    }

    #[test]
    fn any_number_of_keys_stays_bounded_and_those_in_use_stay() {
        let start = clock::now();
        let keyed = Keyed::new(start);
        let made = Cell::new(0);
        for n in 0..10_000_u64 {
            let now = start + Duration::from_millis(n * 100);
            keyed.get(&format!("host-{n}"), now, || n);
            keyed.get("in use", now, || {
                made.set(made.get() + 1);
                n
            });
            assert!(keyed.all().len() <= MOST_KEYS);
        }
        assert_eq!(made.get(), 1);
    }

    #[test]
    fn idle_keys_go_when_there_is_no_room() {
        let start = clock::now();
        let keyed = Keyed::new(start);
        for n in 0..MOST_KEYS {
            keyed.get(&n.to_string(), start, || n);
        }
        let later = start + IDLE;
        keyed.get("5", later, || 0);
        keyed.get("new", later, || 0);
        assert_eq!(keyed.all().len(), 2);
    }

    #[test]
    fn threads_that_meet_a_new_key_agree_on_its_value() {
        let now = clock::now();
        let keyed = Keyed::new(now);
        let values: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|n| {
                    scope.spawn({
                        let keyed = &keyed;
                        move || keyed.get("k", now, || n)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(values.iter().all(|value| *value == values[0]));
    }

    #[test]
    fn keys_are_taken_from_the_request() {
        let request = Request::get("http://A.Example:8080/x").body(()).unwrap();
        assert_eq!(Scope::Shared.key(&request), None);
        let key = |scope: Scope, request| scope.key(request).map(Cow::into_owned);
        assert_eq!(key(Scope::PerAuthority, &request).as_deref(), Some("a.example:8080"));
        assert_eq!(key(Scope::By(|head| head.uri.path()), &request).as_deref(), Some("/x"));
        assert_eq!(key(Scope::PerAuthority, &Request::new(())).as_deref(), Some(""));
    }
}
