use std::collections::BTreeSet;
use std::mem::take;
use std::time::Duration;

use super::declared::Declared;
use super::parts;
use super::waits::{Waits, replace};
use crate::breaker;
use crate::budget::{Costs, Earn};
use crate::config::source::{Section, Table};
use crate::policy::{Policy, PolicyBuilder, Problem};
use crate::ratio::Ratio;
use crate::safety::NonIdempotent;

/// A policy that is being read: a dependency's starts as a clone of the defaults'.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    builder: PolicyBuilder,
    waits: Waits,
    costs: Costs,
    open_for: Duration,
    open_at_most: Duration,
    budget: bool,
    breaker: bool,
    written: BTreeSet<String>,
    /// What is wrong already, and is not to be told again.
    problems: Vec<Problem>,
}

impl Draft {
    /// What `table` declares, over what is here.
    pub(super) fn read(&mut self, mut table: Table<'_>) {
        self.written.extend(table.paths());
        self.read_retry(&mut table);
        self.read_limits(&mut table);
        self.read_budget(&mut table);
        self.read_breaker(&mut table);
        self.check(&table);
    }

    /// The policy; the default where that cannot be, and problems have been noted.
    pub(super) fn declared(&self) -> Declared {
        Declared {
            policy: self.builder().build().unwrap_or_default(),
            budget: self.budget,
            breaker: self.breaker,
            written: self.written.clone(),
        }
    }

    fn read_retry(&mut self, table: &mut Table<'_>) {
        self.set(table.take("attempts").integer(0..=u32::MAX), PolicyBuilder::with_attempts);
        self.waits.read(table);
        let (retried, never) = parts::statuses(table);
        self.set(retried, |builder, statuses| {
            let none = (400..600).fold(builder, PolicyBuilder::with_never_retry);
            statuses.into_iter().fold(none, PolicyBuilder::with_retry_on)
        });
        self.set(never, |builder, statuses| {
            statuses.into_iter().fold(builder, PolicyBuilder::with_never_retry)
        });
        self.set(table.take("hints").table().map(parts::hints), PolicyBuilder::with_hints);
        let non_idempotent = table
            .take("non_idempotent")
            .word(&[("if_refused", NonIdempotent::IfRefused), ("once", NonIdempotent::Once)]);
        self.set(non_idempotent, PolicyBuilder::with_non_idempotent);
    }

    fn read_limits(&mut self, table: &mut Table<'_>) {
        self.set(table.take("total_timeout").duration(), PolicyBuilder::with_total_timeout);
        self.set(table.take("attempt_timeout").duration(), PolicyBuilder::with_attempt_timeout);
        self.set(
            table.take("concurrency").integer(0..=usize::MAX),
            PolicyBuilder::with_concurrency,
        );
        self.set(table.take("concurrency_wait").duration(), PolicyBuilder::with_concurrency_wait);
    }

    fn read_budget(&mut self, table: &mut Table<'_>) {
        let Some(mut table) = section(&mut self.budget, table.take("budget").section()) else {
            return;
        };
        let ratio = table.take("ratio").ratio().map(Ratio::as_f64);
        self.set(ratio, PolicyBuilder::with_budget_ratio);
        let floor = table.take("floor").number(f64::NEG_INFINITY..=f64::INFINITY);
        self.set(floor, PolicyBuilder::with_budget_floor);
        let earn = table
            .take("earn")
            .word(&[("per_success", Earn::PerSuccess), ("per_call", Earn::PerCall)]);
        self.set(earn, PolicyBuilder::with_budget_earn);
        self.costs = parts::costs(&table.take("cost"), self.costs);
    }

    fn read_breaker(&mut self, table: &mut Table<'_>) {
        let Some(mut table) = section(&mut self.breaker, table.take("breaker").section()) else {
            return;
        };
        let rate = table.take("failure_rate").ratio().map(Ratio::as_f64);
        self.set(rate, PolicyBuilder::with_breaker_failure_rate);
        self.set(
            table.take("minimum_calls").integer(0..=u32::MAX),
            PolicyBuilder::with_breaker_minimum_calls,
        );
        self.set(table.take("window").duration(), PolicyBuilder::with_breaker_window);
        replace(&mut self.open_for, table.take("open_for").duration());
        replace(&mut self.open_at_most, table.take("open_at_most").duration());
        self.set(table.take("probes").integer(0..=u32::MAX), PolicyBuilder::with_breaker_probes);
        let slow = table.take("slow_calls").table().and_then(|mut slow| {
            let after = slow.take("after").required().duration();
            let rate = slow.take("rate").required().ratio();
            after.zip(rate.map(Ratio::as_f64))
        });
        self.set(slow, |builder, (after, rate)| builder.with_breaker_slow_calls(after, rate));
    }

    /// Notes what the policy cannot be, at the key in `table` that makes it so.
    fn check(&mut self, table: &Table<'_>) {
        let Err(error) = self.builder().build() else {
            return;
        };
        for problem in error.problems() {
            if self.problems.contains(problem) {
                continue;
            }
            let (key, message) = (problem.key(), problem.message());
            match with_partners(key).iter().find(|key| table.has(key)) {
                Some(cause) if *cause != key => {
                    table.problem(cause, format!("`{key}` cannot work with this: {message}"));
                }
                _ => table.problem(key, message),
            }
        }
        self.problems = error.problems().to_vec();
    }

    fn builder(&self) -> PolicyBuilder {
        let builder = self.builder.clone().with_backoff(self.waits.backoff());
        let builder = builder.with_breaker_open_for(self.open_for, self.open_at_most);
        parts::REASONS
            .iter()
            .fold(builder, |builder, (_, why)| builder.with_budget_cost(*why, self.costs.of(*why)))
    }

    fn set<T>(&mut self, value: Option<T>, with: impl FnOnce(PolicyBuilder, T) -> PolicyBuilder) {
        if let Some(value) = value {
            self.builder = with(take(&mut self.builder), value);
        }
    }
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            builder: Policy::builder(),
            waits: Waits::default(),
            costs: Costs::ONE,
            open_for: breaker::Rules::OPEN_FOR,
            open_at_most: breaker::Rules::OPEN_AT_MOST,
            budget: true,
            breaker: true,
            written: BTreeSet::new(),
            problems: Vec::new(),
        }
    }
}

/// Whether the part is there, and what is declared of it.
fn section<'d>(is_on: &mut bool, section: Option<Section<'d>>) -> Option<Table<'d>> {
    match section? {
        Section::Off => *is_on = false,
        Section::On => *is_on = true,
        Section::Table(table) => {
            *is_on = true;
            return Some(table);
        }
    }
    None
}

/// The key, and those whose values it can contradict.
fn with_partners(key: &'static str) -> Vec<&'static str> {
    match key {
        "base" => vec!["base", "cap", "jitter"],
        "factor" => vec!["factor", "curve"],
        "attempt_timeout" => vec!["attempt_timeout", "total_timeout"],
        "breaker.open_for" => vec!["breaker.open_for", "breaker.open_at_most"],
        other => vec![other],
    }
}
