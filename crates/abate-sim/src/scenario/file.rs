use std::time::Duration;

use abate_core::config::Declared;
use abate_core::config::source::{Problems, Table, read};

use super::{clients, servers};
use crate::model::{Arrivals, Conduct, Group, Model, Server, Trouble};

/// The longest that a scenario may last: the schedules of job queues take weeks.
const LONGEST: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// The most stretches of time that are counted: a page has room for no more, and memory neither.
const MOST_STEPS: u128 = 10_000_000;

/// A scenario: what happens, and whose policies meet it.
///
/// # Examples
///
/// ```
/// use abate_sim::scenario::Scenario;
///
/// let file = r#"
///     title = "Ten seconds without an answer"
///     length = "2m"
///
///     [[server]]
///     name = "payments"
///     workers = 30
///     service = "100ms"
///
///     [[clients]]
///     name = "shop"
///     calls = { poisson = 280 }
///
///     [[trouble]]
///     what = "hold"
///     from = "30s"
///     for = "10s"
///
///     [[policy]]
///     name = "default"
///     attempt_timeout = "1s"
/// "#;
/// let scenario = Scenario::parse("outage.toml", file.as_bytes())?;
/// let default = scenario.candidates.first().ok_or("one policy")?;
/// let run = abate_sim::run(&scenario.model(&default.conduct), 1);
/// assert!(run.success() > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub title: String,
    /// What happens, in a few sentences.
    pub about: String,
    /// The policies that it compares, in order.
    pub candidates: Vec<Candidate>,
    length: Duration,
    step: Duration,
    /// With whether their policy is their own.
    groups: Vec<(Group, bool)>,
    servers: Vec<Server>,
    troubles: Vec<Trouble>,
    watched: usize,
}

/// A policy to be compared.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// How clients call under it.
    pub conduct: Conduct,
}

impl Scenario {
    /// The scenario in `bytes`, which are TOML. `file` is how problems call the file.
    ///
    /// # Errors
    ///
    /// All that is wrong, with line, column and key: what is no TOML, keys that are unknown or missing,
    /// values that cannot be.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, Problems> {
        read(file, bytes, Self::read)
    }

    /// What is to be run under `conduct`, by all clients that have no policy of their own.
    #[must_use]
    pub fn model(&self, conduct: &Conduct) -> Model {
        let compared = |(group, is_own): &(Group, bool)| {
            let mut group = group.clone();
            if !is_own {
                group.conduct = conduct.clone();
            }
            group
        };
        Model {
            length: self.length,
            step: self.step,
            groups: self.groups.iter().map(compared).collect(),
            servers: self.servers.clone(),
            troubles: self.troubles.clone(),
            watched: self.watched,
            keeps_times: true,
        }
    }

    /// When it ends, from its start, if nothing happens to end it sooner.
    #[must_use]
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// How busy the watched server is kept at the start, as a share of what it can answer. `None` where
    /// calls have no rate, and where the server has no number of workers.
    #[must_use]
    pub fn load(&self) -> Option<f64> {
        let capacity = self.servers.get(self.watched)?.capacity()?;
        let rates = self.groups.iter().filter_map(|(group, _)| match &group.arrivals {
            Arrivals::Poisson(rate) | Arrivals::Even(rate) => Some(rate.at(Duration::ZERO)),
            _ => None,
        });
        Some(rates.sum::<f64>() / capacity).filter(|load| *load > 0.0)
    }

    /// How long its longest trouble lasts; `None` if there is none.
    #[must_use]
    pub fn trouble(&self) -> Option<Duration> {
        self.troubles.iter().map(|trouble| trouble.to.saturating_sub(trouble.from)).max()
    }

    /// The same scenario with `load` times the calls, and with trouble that lasts `trouble` times as
    /// long.
    #[must_use]
    pub fn scaled(&self, load: f64, trouble: f64) -> Self {
        let mut scaled = self.clone();
        for (group, _) in &mut scaled.groups {
            group.arrivals = group.arrivals.times(load);
        }
        for it in &mut scaled.troubles {
            let before = it.to.saturating_sub(it.from);
            let after = before.mul_f64(trouble.max(0.0));
            it.to = it.from.saturating_add(after);
            scaled.length = scaled.length.saturating_add(after.saturating_sub(before));
        }
        scaled
    }

    fn read(mut root: Table<'_>) -> Self {
        let title = root.take("title").required().text().unwrap_or_default().to_owned();
        let about = root.take("about").text().unwrap_or_default().trim().to_owned();
        let length = root.take("length").required();
        let step = root.take("step");
        let lasts = length.duration().unwrap_or(Duration::from_secs(1));
        let counted = step.duration().unwrap_or(Duration::from_secs(1));
        if lasts.is_zero() || lasts > LONGEST {
            length.problem("must be longer than nothing, and 100 days at the most");
        }
        if counted.is_zero() || lasts.as_nanos() / counted.as_nanos().max(1) > MOST_STEPS {
            step.problem("must be longer than nothing, and at least a ten-millionth of the length");
        }
        let (names, servers) = servers::read(&mut root);
        let watch = root.take("watch");
        let watched = servers::find(&names, &watch).unwrap_or(0);
        let troubles = servers::read_troubles(&mut root, &names);
        let groups = clients::read(&mut root, &names);
        Self {
            title,
            about,
            candidates: Candidate::read_all(&mut root),
            length: lasts,
            step: counted,
            groups,
            servers,
            troubles,
            watched,
        }
    }
}

impl Candidate {
    /// A policy of a policy file, and how a stack by it calls.
    #[must_use]
    pub fn new(name: impl Into<String>, declared: &Declared) -> Self {
        Self { name: name.into(), conduct: clients::conduct(declared) }
    }

    fn read_all(root: &mut Table<'_>) -> Vec<Self> {
        let policies = root.take("policy").tables().into_iter().map(|mut policy| {
            let name = policy.take("name").required().text().unwrap_or_default().to_owned();
            Self::new(name, &Declared::read(policy))
        });
        policies.collect()
    }
}
