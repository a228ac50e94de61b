use std::time::Duration;

use crate::backoff::{Backoff, Curve, Jitter};
use crate::config::source::Table;
use crate::policy::defaults;

/// The waits between attempts, with the parameters of curves and jitters that are not chosen: a
/// dependency may give a parameter of the curve that the defaults choose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    backoff: Backoff,
    factor: f64,
    power: u32,
    per_retry: Duration,
    steps: u32,
}

impl Waits {
    /// What `table` declares, over what is here.
    pub(super) fn read(&mut self, table: &mut Table<'_>) {
        replace(&mut self.backoff.base, table.take("base").duration());
        replace(&mut self.backoff.cap, table.take("cap").duration());
        replace(&mut self.factor, table.take("factor").number(f64::NEG_INFINITY..=f64::INFINITY));
        replace(&mut self.power, table.take("power").integer(1..=u32::MAX));
        replace(&mut self.per_retry, table.take("jitter_per_retry").duration());
        replace(&mut self.steps, table.take("jitter_steps").integer(1..=u32::MAX));

        let Self { factor, power, per_retry, steps, .. } = *self;
        let curve = table.take("curve").word(&[
            ("fixed", Curve::Fixed),
            ("exponential", Curve::Exponential { factor }),
            ("polynomial", Curve::Polynomial { power }),
        ]);
        let jitter = table.take("jitter").word(&[
            ("none", Jitter::None),
            ("full", Jitter::Full),
            ("equal", Jitter::Equal),
            ("decorrelated", Jitter::Decorrelated),
            ("added", Jitter::Added { per_retry }),
            ("added_in_steps", Jitter::AddedInSteps { steps }),
        ]);
        self.backoff.curve = curve.unwrap_or(match self.backoff.curve {
            Curve::Fixed => Curve::Fixed,
            Curve::Exponential { .. } => Curve::Exponential { factor },
            Curve::Polynomial { .. } => Curve::Polynomial { power },
        });
        self.backoff.jitter = jitter.unwrap_or(match self.backoff.jitter {
            Jitter::Added { .. } => Jitter::Added { per_retry },
            Jitter::AddedInSteps { .. } => Jitter::AddedInSteps { steps },
            other => other,
        });
        self.refuse_idle_keys(table);
    }

    pub(super) const fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// A parameter of a curve or jitter that is not chosen would be without effect.
    fn refuse_idle_keys(&self, table: &Table<'_>) {
        let Backoff { curve, jitter, .. } = self.backoff;
        for (key, used, of) in [
            ("factor", matches!(curve, Curve::Exponential { .. }), "curve = \"exponential\""),
            ("power", matches!(curve, Curve::Polynomial { .. }), "curve = \"polynomial\""),
            ("jitter_per_retry", matches!(jitter, Jitter::Added { .. }), "jitter = \"added\""),
            (
                "jitter_steps",
                matches!(jitter, Jitter::AddedInSteps { .. }),
                "jitter = \"added_in_steps\"",
            ),
        ] {
            if !used && table.has(key) {
                table.problem(key, format!("only `{of}` has it, and that is not chosen"));
            }
        }
    }
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            backoff: defaults::BACKOFF,
            factor: 2.0,
            // Sidekiq's, for the curves and jitters that are.
            power: 4,
            per_retry: Duration::from_secs(10),
            steps: 30,
        }
    }
}

pub(super) fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
