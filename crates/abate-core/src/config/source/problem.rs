use std::fmt;
use std::sync::Arc;

/// One thing in a file that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) key: String,
    pub(super) message: String,
}

impl Problem {
    /// The file, as it was called when it was parsed.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// The way to the key concerned, such as `dependency.payments.attempts`; empty where the file is
    /// no TOML at all.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, and what would be right.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, message } = self;
        write!(f, "{file}:{line}:{column}: ")?;
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        f.write_str(message)
    }
}

/// All that is wrong with a file, in the order of its lines; a line each when displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn one(problem: Problem) -> Self {
        Self(vec![problem])
    }

    /// `Err` with all of `problems`, or `Ok` where there is none.
    pub(super) fn unless_none(mut problems: Vec<Problem>) -> Result<(), Self> {
        // By place alone: what is said of one place stays in the order in which it was found.
        problems.sort_by_key(|problem| (problem.line, problem.column));
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }

    /// The problems; at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if n == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
