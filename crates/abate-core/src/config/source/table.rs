use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::Document;
use super::nearest::suggestion;
use super::problem::Problems;
use super::value::{Found, Value};

/// What `reader` makes of the tables in `bytes`, from the one that all others are in. `file` is how
/// problems call the file.
///
/// # Errors
///
/// All that is wrong: bytes that are no TOML, what `reader` noted, and keys that it did not take.
pub fn read<T>(
    file: &str,
    bytes: &[u8],
    reader: impl FnOnce(Table<'_>) -> T,
) -> Result<T, Problems> {
    let document = Document::parse(file, bytes)?;
    let value = reader(Table::new(&document, String::new(), 0, document.tables.get_ref()));
    document.finish(value)
}

/// A table of a file. Whatever was not taken from it is noted as unknown when it is dropped.
#[derive(Debug)]
#[must_use = "what is not taken from a table counts as unknown"]
pub struct Table<'d> {
    document: &'d Document<'d>,
    path: String,
    at: usize,
    entries: &'d DeTable<'d>,
    known: Vec<&'static str>,
    rest_taken: bool,
}

/// What may stand where a part is declared or left out.
#[derive(Debug)]
#[must_use = "a table in it counts as unread"]
pub enum Section<'d> {
    /// `false`: left out.
    Off,
    /// `true`: there, as it is by default.
    On,
    /// There, as declared.
    Table(Table<'d>),
}

impl<'d> Table<'d> {
    fn new(document: &'d Document<'d>, path: String, at: usize, entries: &'d DeTable<'d>) -> Self {
        Self { document, path, at, entries, known: Vec::new(), rest_taken: false }
    }

    /// What stands under `key`, which is known from now on.
    pub fn take(&mut self, key: &'static str) -> Value<'d> {
        self.known.push(key);
        self.value(key, self.entries.get(key))
    }

    /// All that was not taken yet, by name and in the order of the file: for tables whose keys are the
    /// user's own names.
    #[must_use]
    pub fn take_rest(&mut self) -> Vec<(&'d str, Value<'d>)> {
        let mut rest: Vec<_> = self.unknown().collect();
        self.rest_taken = true;
        rest.sort_by_key(|(key, _)| key.span().start);
        let mut values = Vec::new();
        for (key, found) in rest {
            let name: &str = key.get_ref();
            values.push((name, self.value(name, Some(found))));
        }
        values
    }

    /// Whether something stands at `path`, such as `budget.ratio`, taken or not.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.find(path).1
    }

    /// The way to each value in it, such as `budget.ratio`, taken or not.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect_paths(self.entries, "", &mut paths);
        paths
    }

    /// Notes a problem of what stands at `path`, such as `budget.ratio`; it is shown at the last
    /// key on the way that exists.
    pub fn problem(&self, path: &str, message: impl Into<String>) {
        self.document.note(self.find(path).0, &join(&self.path, path), message.into());
    }

    /// Where `path` leads, as far as it exists, and whether all of it does.
    fn find(&self, path: &str) -> (usize, bool) {
        let (mut at, mut entries) = (self.at, Some(self.entries));
        for key in path.split('.') {
            let Some((name, found)) = entries.and_then(|entries| entries.get_key_value(key)) else {
                return (at, false);
            };
            at = match found.get_ref() {
                DeValue::Table(_) => name.span().start,
                _ => found.span().start,
            };
            entries = found.get_ref().as_table();
        }
        (at, true)
    }

    fn value(&self, key: &str, found: Option<Found<'d>>) -> Value<'d> {
        Value {
            document: self.document,
            path: join(&self.path, &quoted(key)),
            at: found.map_or(self.at, |found| found.span().start),
            found,
        }
    }

    fn unknown(&self) -> impl Iterator<Item = (&'d Spanned<toml::de::DeString<'d>>, Found<'d>)> {
        let entries = if self.rest_taken { None } else { Some(self.entries) };
        let known = |key: &str| self.known.contains(&key);
        entries.into_iter().flatten().filter(move |(key, _)| !known(key.get_ref()))
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        for (key, _) in self.unknown() {
            let name = key.get_ref();
            let meant = suggestion(name, self.known.iter().copied());
            let path = join(&self.path, &quoted(name));
            self.document.note(key.span().start, &path, format!("unknown key{meant}"));
        }
    }
}

impl<'d> Value<'d> {
    /// A table.
    #[must_use]
    pub fn table(&self) -> Option<Table<'d>> {
        match self.found?.get_ref() {
            DeValue::Table(entries) => {
                Some(Table::new(self.document, self.path.clone(), self.at, entries))
            }
            _ => self.expect("a table"),
        }
    }

    /// An array of tables; none where nothing stands there.
    #[must_use]
    pub fn tables(&self) -> Vec<Table<'d>> {
        self.items().iter().filter_map(Value::table).collect()
    }

    /// A table, or whether there is to be what it would declare.
    #[must_use]
    pub fn section(&self) -> Option<Section<'d>> {
        match self.found?.get_ref() {
            DeValue::Boolean(true) => Some(Section::On),
            DeValue::Boolean(false) => Some(Section::Off),
            DeValue::Table(_) => self.table().map(Section::Table),
            _ => self.expect("a table, `true` or `false`"),
        }
    }
}

/// The parser bounds how deep this goes.
fn collect_paths(entries: &DeTable<'_>, above: &str, paths: &mut Vec<String>) {
    for (key, found) in entries {
        let path = join(above, &quoted(key.get_ref()));
        match found.get_ref() {
            DeValue::Table(entries) => collect_paths(entries, &path, paths),
            _ => paths.push(path),
        }
    }
}

/// `path` with `key` behind it.
fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A key as TOML has it in a path.
fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { format!("{key:?}") }
}
