//! E12, schedules: how long the waits between attempts are, drawn a million times and held against
//! their laws.

use std::time::Duration;

use abate_core::backoff::{Backoff, Curve, Jitter};
use abate_core::rng::Seed;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{mean, ms, s};
use crate::Crew;

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E12", title: "waits between attempts", runs: LAWS.len() as u64, run };

/// For five attempts.
const RETRIES: u32 = 4;
/// Those of Sidekiq's default, and the numbers that `rand(30)` may come to.
const SIDEKIQS_RETRIES: u32 = 25;
const SIDEKIQS_STEPS: u64 = 30;
const CALLS: u64 = 100_000;
const DRAWS: u64 = 1_000_000;
/// A sample of so many strays that far from its own law once in a thousand times (Kolmogorov, 1933).
const FARTHEST: f64 = 0.00195;

const BACKOFF: Backoff = Backoff {
    base: ms(100),
    curve: Curve::Exponential { factor: 2.0 },
    cap: s(10),
    jitter: Jitter::Full,
};

/// A wait, and the probability that it is no longer than a number of seconds.
struct Case {
    name: &'static str,
    backoff: Backoff,
    retry: u32,
    previous: Duration,
    law: fn(f64) -> f64,
}

const LAWS: [Case; 7] = [
    Case::new("none", Jitter::None, |wait| if wait < 0.4 { 0.0 } else { 1.0 }),
    Case::new("full", Jitter::Full, |wait| even(wait, 0.0, 0.4)),
    Case { retry: 50, ..Case::new("full at the cap", Jitter::Full, |wait| even(wait, 0.0, 10.0)) },
    Case::new("equal", Jitter::Equal, |wait| even(wait, 0.2, 0.4)),
    Case {
        previous: ms(500),
        ..Case::new("decorrelated", Jitter::Decorrelated, |wait| even(wait, 0.1, 1.5))
    },
    Case {
        backoff: Backoff::SIDEKIQ,
        ..Case::new("Sidekiq's", Jitter::None, |wait| even(wait, 31.0, 61.0))
    },
    Case {
        backoff: Backoff::SIDEKIQ_LEGACY,
        // Of the third retry: 31 seconds, and three for each of the steps.
        ..Case::new("Sidekiq's legacy", Jitter::None, |wait| {
            even(((wait - 31.0) / 3.0).floor() + 1.0, 0.0, SIDEKIQS_STEPS as f64)
        })
    },
];

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let mut lines = five_attempts();
    lines.extend(sidekiqs());
    let distances = crew.each(LAWS.len() as u64, |case| {
        LAWS.get(case as usize).map(|case| (case.name, case.distance(DRAWS)))
    });
    lines.extend(distances.into_iter().flatten().map(|(name, distance)| {
        Line::at_most(format!("jitter, {name}: distance from its law"), distance, FARTHEST)
    }));
    lines
}

/// All waits of a call together.
fn five_attempts() -> Vec<Line> {
    const UNIT: &str = "s";
    const TOLERANCE: f64 = 0.02;
    let mut totals: Vec<_> = (0..CALLS).map(|call| waits(&BACKOFF, RETRIES, call).sum()).collect();
    totals.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (share * (totals.len() - 1) as f64) as usize;
        totals.get(place).copied().unwrap_or(f64::NAN)
    };
    let longest: Duration = (1..=RETRIES).map(|retry| BACKOFF.ceiling(retry, Duration::ZERO)).sum();
    let longest = longest.as_secs_f64();
    [
        Line::within("five attempts, median of all waits", at(0.5), 0.752, TOLERANCE),
        Line::within("five attempts, 99 of 100", at(0.99), 1.30, TOLERANCE),
        Line::within("five attempts, longest possible", longest, 1.5, TOLERANCE),
        Line::at_most("five attempts, longest drawn", at(1.0), longest),
    ]
    .map(|line| line.in_units(UNIT))
    .into()
}

/// The waits of Sidekiq up to version 6: `count⁴ + 15 + rand(30) · (count + 1)` seconds.
fn sidekiqs() -> Vec<Line> {
    let exact = (0..SIDEKIQS_RETRIES).filter(|count| {
        let curve = u64::from(*count).pow(4) + 15;
        let most = curve + (SIDEKIQS_STEPS - 1) * u64::from(count + 1);
        let drawn: Vec<_> = (0..2000)
            .map(|call| wait(&Backoff::SIDEKIQ_LEGACY, count + 1, Duration::ZERO, call))
            .collect();
        drawn.iter().min() == Some(&s(curve)) && drawn.iter().max() == Some(&s(most))
    });
    let name = "Sidekiq's legacy, counts with its least and longest wait";
    let mut lines = vec![Line::near(name, exact.count() as f64, f64::from(SIDEKIQS_RETRIES), 0.0)];
    for (retries, expected, unit, seconds) in
        [(5, 646.0, "s", 1.0), (10, 4.52, "h", 3600.0), (25, 20.46, "days", 86_400.0)]
    {
        let totals = (0..CALLS / 10)
            .map(|call| waits(&Backoff::SIDEKIQ_LEGACY, retries, call).sum::<f64>() / seconds);
        let name = format!("Sidekiq's legacy, {retries} retries in the mean");
        lines.push(Line::within(name, mean(totals), expected, 0.005).in_units(unit));
    }
    lines
}

impl Case {
    const fn new(name: &'static str, jitter: Jitter, law: fn(f64) -> f64) -> Self {
        let backoff = Backoff { jitter, ..BACKOFF };
        Self { name, backoff, retry: 3, previous: Duration::ZERO, law }
    }

    /// The most by which the share of `draws` waits up to some length differs from the law (Kolmogorov
    /// and Smirnov), before and after each step where the law has steps.
    fn distance(&self, draws: u64) -> f64 {
        let mut waits: Vec<_> = (0..draws)
            .map(|call| wait(&self.backoff, self.retry, self.previous, call).as_secs_f64())
            .collect();
        waits.sort_by(f64::total_cmp);
        let mut below = 0.0;
        let mut distance = 0.0_f64;
        for equal in waits.chunk_by(|a, b| a == b) {
            let Some(wait) = equal.first() else { continue };
            let up_to = below + equal.len() as f64;
            let before = (below / draws as f64 - (self.law)(wait.next_down())).abs();
            let after = (up_to / draws as f64 - (self.law)(*wait)).abs();
            distance = distance.max(before).max(after);
            below = up_to;
        }
        distance
    }
}

/// A wait in whole: the `call`th draw.
fn wait(backoff: &Backoff, retry: u32, previous: Duration, call: u64) -> Duration {
    backoff.delay(retry, previous, None, &mut Seed::new(u64::from(retry)).stream(call)).0
}

/// The waits of a call, in seconds.
fn waits(backoff: &Backoff, retries: u32, call: u64) -> impl Iterator<Item = f64> {
    let mut stream = Seed::new(0).stream(call);
    let mut previous = Duration::ZERO;
    (1..=retries).map(move |retry| {
        previous = backoff.delay(retry, previous, None, &mut stream).0;
        previous.as_secs_f64()
    })
}

/// The probability of up to `wait`, evenly from `least` to `most`.
const fn even(wait: f64, least: f64, most: f64) -> f64 {
    ((wait - least) / (most - least)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_near_its_own_law_and_far_from_another() {
        // What 10⁴ draws stray once in a thousand times.
        const FAR: f64 = 0.0195;
        for case in &LAWS {
            let distance = case.distance(10_000);
            assert!(distance < FAR, "{}: {distance}", case.name);
        }
        let other =
            Case::new("equal by the law of full", Jitter::Equal, |wait| even(wait, 0.0, 0.4));
        assert!((other.distance(10_000) - 0.5).abs() < FAR);
    }
}
