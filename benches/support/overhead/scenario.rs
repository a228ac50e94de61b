use std::fmt;
use std::str::FromStr;

use super::client::Client;

/// What is laid over the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Bare,
    Tower,
    TowerResilience,
    Seatbelt,
    StackUnlimited,
    Stack,
    Retry,
    RetryBudget,
    Breaker,
    RetryAfter,
    Limit,
    AttemptTimeout,
    Deadline,
    Cooldown,
}

use Subject::{
    AttemptTimeout, Bare, Breaker, Cooldown, Deadline, Limit, Retry, RetryAfter, RetryBudget,
    Seatbelt, Stack, StackUnlimited, Tower, TowerResilience,
};

impl Subject {
    pub(super) const ALL: [Self; 14] = [
        Bare,
        Tower,
        TowerResilience,
        Seatbelt,
        StackUnlimited,
        Stack,
        Retry,
        RetryBudget,
        Breaker,
        RetryAfter,
        Limit,
        AttemptTimeout,
        Deadline,
        Cooldown,
    ];

    /// Each layer of ours by itself.
    pub(super) const LAYERS: [Self; 8] =
        [Retry, RetryBudget, Breaker, RetryAfter, Limit, AttemptTimeout, Deadline, Cooldown];

    pub(super) const fn is_ours(self) -> bool {
        !matches!(self, Bare | Tower | TowerResilience | Seatbelt)
    }

    /// Several layers, which compare with several.
    pub(super) const fn is_stack(self) -> bool {
        matches!(self, Tower | TowerResilience | Seatbelt | StackUnlimited | Stack)
    }

    pub(super) const fn boxes_its_future(self) -> bool {
        matches!(self, TowerResilience | Seatbelt)
    }

    pub(super) const fn name(self) -> &'static str {
        self.words().0
    }

    pub(super) const fn title(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Bare => ("bare", "bare client (absolute)"),
            Tower => ("tower", "tower: retry + budget > limit > timeout"),
            TowerResilience => {
                ("resilience", "tower-resilience: retry > breaker > bulkhead > time")
            }
            Seatbelt => ("seatbelt", "seatbelt: retry > breaker > timeout"),
            StackUnlimited => ("unlimited", "abate: `Stack` without a limit"),
            Stack => ("stack", "**abate: `Stack`, all six layers**"),
            Retry => ("retry", "`RetryLayer`, budget included"),
            RetryBudget => ("retry-budget", "`RetryBudgetLayer`"),
            Breaker => ("breaker", "`CircuitBreakerLayer`"),
            RetryAfter => ("retry-after", "`RetryAfterLayer`"),
            Limit => ("limit", "`ConcurrencyLimitLayer`"),
            AttemptTimeout => ("attempt-timeout", "`AttemptTimeoutLayer`"),
            Deadline => ("deadline", "`DeadlineLayer`"),
            Cooldown => ("cooldown", "`CooldownLayer`"),
        }
    }
}

/// What becomes of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Path {
    Ready,
    ReadyHeaders,
    Pending,
    PendingHeaders,
    Unrepeatable,
    BreakerOpen,
    LimitFull,
    RepeatRefused,
    BudgetEmpty,
    OneRetry,
}

impl Path {
    pub(super) const SUCCEEDING: [Self; 5] =
        [Self::Ready, Self::ReadyHeaders, Self::Pending, Self::PendingHeaders, Self::Unrepeatable];

    pub(super) const OTHER: [Self; 5] = [
        Self::BreakerOpen,
        Self::LimitFull,
        Self::RepeatRefused,
        Self::BudgetEmpty,
        Self::OneRetry,
    ];

    pub(super) const fn name(self) -> &'static str {
        self.words().0
    }

    pub(super) const fn title(self) -> &'static str {
        self.words().1
    }

    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Ready => ("ready", "GET, ready at once"),
            Self::ReadyHeaders => ("ready-headers", "GET with 8 headers, ready at once"),
            Self::Pending => ("pending", "GET, pending once"),
            Self::PendingHeaders => ("pending-headers", "GET with 8 headers, pending once"),
            Self::Unrepeatable => ("unrepeatable", "POST, ready at once"),
            Self::BreakerOpen => ("breaker-open", "refused: the breaker is open"),
            Self::LimitFull => ("limit-full", "refused: the limit is reached"),
            Self::RepeatRefused => ("repeat-refused", "refused: a repeat without budget"),
            Self::BudgetEmpty => ("budget-empty", "503 returned: no budget for a retry"),
            Self::OneRetry => ("one-retry", "503, then 200 (second call included)"),
        }
    }

    /// What takes this path.
    pub(super) const fn subjects(self) -> &'static [Subject] {
        match self {
            Self::BreakerOpen => &[Bare, Stack, Breaker],
            Self::LimitFull => &[Bare, Stack, Limit],
            Self::RepeatRefused => &[Bare, RetryBudget],
            Self::BudgetEmpty => &[Bare, Retry],
            Self::OneRetry => &[Bare, Tower, Stack, Retry],
            _ => &Subject::ALL,
        }
    }

    pub(super) const fn client(self) -> Client {
        match self {
            Self::Pending | Self::PendingHeaders => Client::Pending,
            Self::BudgetEmpty => Client::Fails,
            Self::OneRetry => Client::FailsEverySecond,
            _ => Client::Ready,
        }
    }

    pub(super) const fn has_headers(self) -> bool {
        matches!(self, Self::ReadyHeaders | Self::PendingHeaders)
    }

    /// Whether calls end with a 200, with anything over the bare client.
    pub(super) const fn succeeds(self) -> bool {
        !matches!(
            self,
            Self::BreakerOpen | Self::LimitFull | Self::RepeatRefused | Self::BudgetEmpty
        )
    }
}

/// One figure's circumstances, as in `stack/ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scenario {
    pub(super) subject: Subject,
    pub(super) path: Path,
}

impl Scenario {
    pub(super) const fn new(subject: Subject, path: Path) -> Self {
        Self { subject, path }
    }

    /// The same call without anything over its client.
    pub(super) const fn bare(self) -> Self {
        Self { subject: Bare, path: self.path }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.subject.name(), self.path.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let paths = Path::SUCCEEDING.iter().chain(&Path::OTHER);
        paths
            .flat_map(|path| path.subjects().iter().map(|subject| Self::new(*subject, *path)))
            .find(|scenario| scenario.to_string() == text)
            .ok_or_else(|| format!("there is no scenario `{text}`"))
    }
}
