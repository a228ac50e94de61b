use std::cell::RefCell;
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;

use super::problem::{Problem, Problems};

/// A parsed file, and what has been found wrong with it so far.
#[derive(Debug)]
pub(super) struct Document<'t> {
    file: Arc<str>,
    text: &'t str,
    pub(super) tables: Spanned<DeTable<'t>>,
    problems: RefCell<Vec<Problem>>,
}

impl<'t> Document<'t> {
    /// What is no UTF-8 or no TOML is an error, with the first of it in each line.
    pub(super) fn parse(file: &str, bytes: &'t [u8]) -> Result<Self, Problems> {
        let file: Arc<str> = file.into();
        let problem = |text: &str, at: usize, message: String| {
            let (line, column) = place(text, at);
            Problem { file: Arc::clone(&file), line, column, key: String::new(), message }
        };
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.valid_up_to();
                let text = String::from_utf8_lossy(&bytes[..valid]);
                let message = "this is no UTF-8, and so no TOML".to_owned();
                return Err(Problems::one(problem(&text, valid, message)));
            }
        };
        let (tables, errors) = DeTable::parse_recoverable(text);
        let mut problems: Vec<_> = errors
            .iter()
            .map(|error| {
                let at = error.span().map_or(text.len(), |span| span.start);
                problem(text, at, format!("this is no TOML: {}", error.message()))
            })
            .collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        // What follows the first mistake of a line follows from it.
        problems.dedup_by_key(|problem| problem.line);
        Problems::unless_none(problems)?;
        Ok(Self { file, text, tables, problems: RefCell::default() })
    }

    /// `value`, which was read from this document, if nothing was found wrong with it.
    pub(super) fn finish<T>(self, value: T) -> Result<T, Problems> {
        Problems::unless_none(self.problems.into_inner()).map(|()| value)
    }

    /// Notes what is wrong at the byte `at`.
    pub(super) fn note(&self, at: usize, key: &str, message: String) {
        let (line, column) = place(self.text, at);
        let (file, key) = (Arc::clone(&self.file), key.to_owned());
        self.problems.borrow_mut().push(Problem { file, line, column, key, message });
    }
}

/// Line and column, in characters and from 1, of the byte `at`.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let (line, start) = match before.rfind('\n') {
        Some(end) => (before.matches('\n').count() + 1, end + 1),
        None => (1, 0),
    };
    // A byte order mark is no character that an editor counts.
    (line, before[start..].trim_start_matches('\u{feff}').chars().count() + 1)
}
