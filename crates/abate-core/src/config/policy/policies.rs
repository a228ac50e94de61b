use super::declared::Declared;
use super::draft::Draft;
use crate::config::source::{Problems, Table, Value, read};

/// The policies of a file: the defaults, and one for each dependency.
///
/// A dependency has what its own section declares, else what the defaults declare, else the
/// [default](crate::policy::defaults). Durations have units (`"200ms"`, `"1.5s"`); ratios are numbers
/// from 0 to 1 or percentages (`"20%"`).
///
/// | key | what it is |
/// |---|---|
/// | `attempts` | the most attempts of a call, the first included |
/// | `base` `cap` | the first upper bound of a wait, and what none exceeds |
/// | `curve` | `"exponential"` with its `factor`, `"fixed"`, or `"polynomial"` with its `power` |
/// | `jitter` | `"full"`, `"none"`, `"equal"`, `"decorrelated"`, `"added"` with `jitter_per_retry`, `"added_in_steps"` with `jitter_steps`: see [`Jitter`](crate::backoff::Jitter) |
/// | `total_timeout` `attempt_timeout` | the longest that a call and one attempt may take |
/// | `retry_on` `never_retry` | all statuses that are retried; or those that are not, although the defaults say so |
/// | `non_idempotent` | `"if_refused"` or `"once"`: see [`NonIdempotent`](crate::safety::NonIdempotent) |
/// | `hints` | `reset` (a header) with `reset_unit` (`"epoch_seconds"`, `"epoch_millis"`, `"seconds"`, `"go_duration"`), `ratelimit`, `grpc_pushback`, `should_retry` |
/// | `budget` | `false`, or `ratio`, `floor` (retries a second), `earn` (`"per_success"`, `"per_call"`), `cost` (tokens; or of `asked`, `server`, `unsent`, `ambiguous` each) |
/// | `breaker` | `false`, or `failure_rate`, `minimum_calls`, `window`, `open_for`, `open_at_most`, `probes`, `slow_calls` (`after`, `rate`) |
/// | `concurrency` `concurrency_wait` | the most calls in flight, and the longest that one waits for its turn |
///
/// # Examples
///
/// ```
/// use abate_core::config::Policies;
///
/// let file = r#"
///     [defaults]
///     attempt_timeout = "3s"
///
///     [dependency.payments]
///     attempts = 4
///     base = "100ms"
///     total_timeout = "10s"
///     budget = { ratio = 0.1 }
/// "#;
/// let policies = Policies::parse("policies.toml", file.as_bytes())?;
/// let payments = policies.dependency("payments").ok_or("no section")?;
/// assert_eq!(payments.policy().attempts(), 4);
/// assert_eq!(payments.policy().attempt_timeout().as_secs(), 3);
///
/// let wrong = file.replace("ratio", "ratoi").replace("\"10s\"", "10");
/// let problems = Policies::parse("policies.toml", wrong.as_bytes()).err().ok_or("refused")?;
/// assert_eq!(
///     problems.to_string(),
///     "policies.toml:8:21: dependency.payments.total_timeout: the unit is missing: expected a \
///      duration such as \"200ms\", \"1.5s\" or \"2m\", got 10\n\
///      policies.toml:9:16: dependency.payments.budget.ratoi: unknown key; did you mean `ratio`?"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policies {
    defaults: Declared,
    dependencies: Vec<(String, Declared)>,
}

impl Policies {
    /// The policies in `bytes`, which are TOML. `file` is how problems call the file.
    ///
    /// # Errors
    ///
    /// All that is wrong: what is no TOML, keys that are unknown, values of another kind, and what
    /// a [`PolicyBuilder`](crate::policy::PolicyBuilder) refuses.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        read(file, bytes, Self::read)
    }

    /// The policy of what has no section of its own.
    #[must_use]
    pub const fn defaults(&self) -> &Declared {
        &self.defaults
    }

    /// The policy of the dependency `name`, if it has a section.
    #[must_use]
    pub fn dependency(&self, name: &str) -> Option<&Declared> {
        self.dependencies().find(|(known, _)| *known == name).map(|(_, declared)| declared)
    }

    /// The dependencies that have a section, by name, in the order of the file.
    pub fn dependencies(&self) -> impl Iterator<Item = (&str, &Declared)> {
        self.dependencies.iter().map(|(name, declared)| (&**name, declared))
    }

    fn read(mut root: Table<'_>) -> Self {
        let mut defaults = Draft::default();
        if let Some(table) = root.take("defaults").table() {
            defaults.read(table);
        }
        let rest = root.take("dependency").table().map(|mut table| table.take_rest());
        let dependency = |(name, value): (&str, Value<'_>)| {
            let mut draft = defaults.clone();
            draft.read(value.table()?);
            Some((name.to_owned(), draft.declared()))
        };
        let dependencies = rest.unwrap_or_default().into_iter().filter_map(dependency).collect();
        Self { defaults: defaults.declared(), dependencies }
    }
}

impl Declared {
    /// The policy that `table` declares: the keys of a `[dependency.NAME]`, without the defaults of
    /// a file. For other files that have policies in them.
    #[must_use]
    pub fn read(table: Table<'_>) -> Self {
        let mut draft = Draft::default();
        draft.read(table);
        draft.declared()
    }
}
