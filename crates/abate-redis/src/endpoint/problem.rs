use std::fmt;

/// One thing that an endpoint cannot be. It never shows a URL, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    key: &'static str,
    message: String,
}

impl Problem {
    pub(super) fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }

    /// The setting concerned.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        self.key
    }

    /// What is wrong with it, and what would be right.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

/// An endpoint that cannot work, with every reason why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointError {
    problems: Vec<Problem>,
}

impl EndpointError {
    pub(super) const fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// What is wrong, in the order of the settings; never empty.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this store cannot be reached: ")?;
        for (n, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if n == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for EndpointError {}
