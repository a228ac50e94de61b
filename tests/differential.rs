//! The simulator against the layers: the same calls, through the decisions in virtual time and through the
//! real stack on a paused clock, come to the same happenings, one for one.

mod differential_calls;
mod differential_clients;
mod differential_play;
mod differential_scenarios;
mod differential_server;

use std::fmt;
use std::time::Duration;

use abate::{BoxError, StopReason};
use abate_sim::trace::{Ending, Happening, What};

use differential_play::play;
use differential_scenarios::{Scenario, Scenarios, herds, limits, metastable, rates, stacks};

/// A tick of tokio's timers.
const TICK: Duration = Duration::from_millis(1);

/// The happenings that are shown before and after the first that differs.
const CONTEXT: usize = 6;

/// What went wrong, as it is to be read.
struct Mismatch(String);

type Tested = Result<(), Mismatch>;

/// Runs `scenarios` on both sides, and looks whether all of `whats` happened in them: two empty records
/// are the same as well.
async fn same(scenarios: Scenarios, whats: &[What]) -> Tested {
    let mut happened = Vec::new();
    for Scenario { name, seed, model } in scenarios? {
        let (_, simulated) = abate_sim::run_in_ticks(&model, seed, TICK);
        let played = play(&model, seed).await?;
        let shared = simulated.iter().zip(&played).take_while(|(one, other)| one == other).count();
        if shared < simulated.len().max(played.len()) {
            return Err(Mismatch(format!(
                "{name}, seed {seed}: after {shared} happenings\nsimulator:\n{}\nlayers:\n{}",
                around(&simulated, shared),
                around(&played, shared),
            )));
        }
        happened.extend(played.into_iter().map(|happening| happening.what));
    }
    match whats.iter().find(|what| !happened.contains(what)) {
        Some(what) => Err(Mismatch(format!("{what:?} never happened"))),
        None => Ok(()),
    }
}

fn around(trace: &[Happening], place: usize) -> String {
    let until = trace.len().min(place + CONTEXT);
    let lines = (place.saturating_sub(CONTEXT)..until).map(|n| {
        let Happening { at, call, attempt, what } = trace[n];
        let mark = if n == place { '>' } else { ' ' };
        format!("{mark} {:?} call {call} attempt {attempt}: {what:?}", Duration::from_nanos(at))
    });
    let lines: Vec<_> = lines.collect();
    if until <= place { format!("{}\n> nothing", lines.join("\n")) } else { lines.join("\n") }
}

impl<E: Into<BoxError>> From<E> for Mismatch {
    fn from(error: E) -> Self {
        Self(error.into().to_string())
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const SUCCESS: What = What::Ended(Ending::Success);
const FAILED: What = What::Answered { status: 500 };
const TURNED_AWAY: What = What::Answered { status: 503 };
const NO_PLACE: What = What::Ended(Ending::LimitReached);
const BREAKER_OPEN: What = What::Ended(Ending::BreakerOpen);

const fn stopped(reason: StopReason) -> What {
    What::Ended(Ending::Stopped(reason))
}

// E2
#[tokio::test(start_paused = true)]
async fn attempts_that_fail_at_random_are_the_same() -> Tested {
    let ends = [StopReason::Attempts, StopReason::Budget, StopReason::Pace].map(stopped);
    same(rates(), &[&[SUCCESS, FAILED], &ends[..]].concat()).await
}

// E7
#[tokio::test(start_paused = true)]
async fn retries_that_keep_a_queue_full_are_the_same() -> Tested {
    same(metastable(), &[SUCCESS, What::TimedOut, stopped(StopReason::Attempts)]).await
}

// E7
#[tokio::test(start_paused = true)]
async fn limits_that_keep_a_queue_short_are_the_same() -> Tested {
    same(limits(), &[SUCCESS, What::TimedOut, NO_PLACE, stopped(StopReason::Budget)]).await
}

// E7
#[tokio::test(start_paused = true)]
async fn whole_stacks_in_several_processes_are_the_same() -> Tested {
    same(stacks(), &[SUCCESS, What::TimedOut, NO_PLACE, BREAKER_OPEN]).await
}

// E9
#[tokio::test(start_paused = true)]
async fn jobs_that_come_back_after_an_outage_are_the_same() -> Tested {
    same(herds(), &[SUCCESS, FAILED, TURNED_AWAY, stopped(StopReason::Attempts)]).await
}
