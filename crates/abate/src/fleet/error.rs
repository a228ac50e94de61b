use std::error::Error;
use std::fmt;

/// Why a budget cannot be shared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetError {
    /// A budget needs a name, which all processes that share it know it by.
    Unnamed,
    /// The name is taken in this process, by a budget with another policy or other terms.
    Taken(String),
    /// The fleet was shut down.
    Closed,
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unnamed => {
                f.write_str("a shared budget needs a name, such as that of the dependency")
            }
            Self::Taken(name) => write!(
                f,
                "the budget `{name}` exists with another policy or other terms: use the same, or another name"
            ),
            Self::Closed => f.write_str("the fleet was shut down: budgets are made before that"),
        }
    }
}

impl Error for FleetError {}
