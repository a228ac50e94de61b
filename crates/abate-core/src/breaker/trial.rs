//! Half-open and slow start: how a breaker finds out whether the dependency is back.
//!
//! Both live behind the machine's lock, which the closed path never takes.

use super::rules::Rules;
use crate::classify::Health;
use crate::deadline::nanos;

/// What an event in half-open or slow start leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    Undecided,
    Open,
    Close,
}

/// Half-open: a few probes, each with a lease.
#[derive(Debug, Default)]
pub(super) struct Probing {
    successes: u32,
    failures: u32,
    answers: u32,
    slow: u32,
    leases: Vec<Lease>,
    next: u64,
}

#[derive(Debug)]
struct Lease {
    probe: u64,
    until: u64,
}

impl Probing {
    pub(super) fn begin(&mut self) {
        self.leases.clear();
        (self.successes, self.failures, self.answers, self.slow) = (0, 0, 0, 0);
    }

    /// Counts the probes whose lease has run out as failures.
    pub(super) fn expire(&mut self, rules: &Rules, now: u64) -> Judgement {
        let before = self.leases.len();
        self.leases.retain(|lease| lease.until > now);
        self.failures += (before - self.leases.len()) as u32;
        self.judge(rules)
    }

    /// A probe, while there is one to be had.
    pub(super) fn admit(&mut self, rules: &Rules, now: u64) -> Option<u64> {
        let taken = self.successes + self.failures + self.leases.len() as u32;
        if taken >= rules.probes {
            return None;
        }
        let probe = self.next;
        self.next += 1;
        self.leases.push(Lease { probe, until: now.saturating_add(nanos(rules.lease())) });
        Some(probe)
    }

    /// A probe has ended; `None` if its lease had run out, when it decides nothing any more.
    pub(super) fn record(
        &mut self,
        rules: &Rules,
        probe: u64,
        health: Health,
        slow: bool,
    ) -> Option<Judgement> {
        let at = self.leases.iter().position(|lease| lease.probe == probe)?;
        self.leases.swap_remove(at);
        self.slow += u32::from(slow);
        match health {
            Health::Success => self.successes += 1,
            Health::Failure => self.failures += 1,
            Health::Answered => self.answers += 1,
            Health::Unknown => {}
        }
        Some(self.judge(rules))
    }

    /// The body of an answered probe broke.
    pub(super) fn break_off(&mut self, rules: &Rules) -> Judgement {
        self.failures += 1;
        self.judge(rules)
    }

    fn judge(&self, rules: &Rules) -> Judgement {
        let opening = rules.opening_failures();
        if self.failures >= opening || self.slow >= rules.opening_slow() {
            Judgement::Open
        } else if rules.probes.saturating_sub(self.successes) < opening
            || self.answers >= rules.probes
        {
            Judgement::Close
        } else {
            Judgement::Undecided
        }
    }
}

/// Slow start: traffic comes back as fast as answers do.
#[derive(Debug, Default)]
pub(super) struct SlowStart {
    since: u64,
    refused: Option<u64>,
    in_flight: u64,
    successes: u64,
    failures: u64,
}

impl SlowStart {
    pub(super) fn begin(&mut self, now: u64) {
        *self = Self { since: now, ..Self::default() };
    }

    pub(super) fn is_over(&self, rules: &Rules, now: u64) -> bool {
        let calm = now.saturating_sub(self.refused.unwrap_or(self.since));
        let lasted = now.saturating_sub(self.since);
        calm >= nanos(Rules::CALM) || lasted >= nanos(rules.longest_slow_start())
    }

    pub(super) fn admit(&mut self, rules: &Rules, now: u64) -> bool {
        let room = u64::from(rules.probes) + self.successes > self.failures + self.in_flight;
        if room {
            self.in_flight += 1;
        } else {
            self.refused = Some(now);
        }
        room
    }

    pub(super) fn record(&mut self, rules: &Rules, health: Health) -> Judgement {
        self.in_flight = self.in_flight.saturating_sub(1);
        match health {
            Health::Success | Health::Answered => self.successes += 1,
            Health::Failure => return self.break_off(rules),
            Health::Unknown => {}
        }
        Judgement::Undecided
    }

    /// A call failed, or the body of one that had succeeded broke.
    pub(super) fn break_off(&mut self, rules: &Rules) -> Judgement {
        self.failures += 1;
        if self.failures >= self.successes + u64::from(rules.probes) {
            Judgement::Open
        } else {
            Judgement::Undecided
        }
    }
}
