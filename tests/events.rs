//! What is told to `tracing`, caught on the present thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::set_global_default;
use tracing::{Level, Metadata, Subscriber};

thread_local! {
    static HEARD: RefCell<Option<Vec<Event>>> = const { RefCell::new(None) };
}

/// Listens on the present thread until it is dropped.
#[derive(Debug)]
pub struct Events(PhantomData<*const ()>);

/// One event.
#[derive(Debug, Clone)]
pub struct Event {
    /// Its level.
    pub level: Level,
    /// Its message.
    pub message: String,
    /// Its other fields, as text.
    pub fields: BTreeMap<&'static str, String>,
}

impl Events {
    /// Listens to our own events.
    #[must_use]
    pub fn listen() -> Self {
        prepare();
        HEARD.set(Some(Vec::new()));
        Self(PhantomData)
    }

    /// What was heard since the last time.
    #[must_use]
    pub fn take(&self) -> Vec<Event> {
        HEARD.replace(Some(Vec::new())).unwrap_or_default()
    }

    /// The messages alone.
    #[must_use]
    pub fn messages(&self) -> Vec<String> {
        self.take().into_iter().map(|event| event.message).collect()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        HEARD.set(None);
    }
}

/// One subscriber for all threads, there before the first event is: `tracing` remembers for each
/// place that tells events whether anyone listens, and one that is met by several threads while
/// subscribers come and go may remember it wrongly.
pub(crate) fn prepare() {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| drop(set_global_default(Listener)));
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("abate")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        HEARD.with_borrow_mut(|heard| {
            let Some(heard) = heard else { return };
            let (level, fields) = (*event.metadata().level(), BTreeMap::new());
            let mut told = Event { level, message: String::new(), fields };
            event.record(&mut told);
            heard.push(told);
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Event {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => drop(self.fields.insert(name, value.to_owned())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
