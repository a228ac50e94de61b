use std::fmt;
use std::io;
use std::process::ExitCode;

/// How a command that could do its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well: code 0.
    Fine,
    /// A figure is not what it should be: code 1.
    Missed,
}

/// Why a command could not do its work: code 2.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given cannot be used; a line for each problem.
    Input(String),
    /// What was found could not be written.
    Output(io::Error),
}

impl Failure {
    /// Whether the reader went away, as `head` does: that is no failure.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(problems) => f.write_str(problems),
            Self::Output(error) => write!(f, "cannot write: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// What the shell is told.
pub(crate) fn code(result: &Result<Outcome, Failure>) -> ExitCode {
    match result {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Missed) => ExitCode::from(1),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // `ExitCode` can be compared by what it shows only.
    fn shown(code: ExitCode) -> String {
        format!("{code:?}")
    }

    #[test]
    fn the_shell_is_told_one_of_three() {
        let output = |kind: io::ErrorKind| Err(Failure::Output(kind.into()));
        for (result, expected) in [
            (Ok(Outcome::Fine), 0),
            (Ok(Outcome::Missed), 1),
            (Err(Failure::Input("no such file".to_owned())), 2),
            (output(io::ErrorKind::StorageFull), 2),
            (output(io::ErrorKind::BrokenPipe), 0),
        ] {
            assert_eq!(shown(code(&result)), shown(ExitCode::from(expected)), "{result:?}");
        }
    }
}
