use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tower::BoxError;

use super::caller::Caller;
use super::scenario::{Path, Scenario, Subject};
use super::subjects::caller;

const ROUNDS: usize = 31;
const CALLS: u32 = 2_000;
const CALLS_OF_A_THREAD: u32 = 10_000;

/// What two threads are let loose on.
pub(super) const SHARED: [Subject; 5] =
    [Subject::Tower, Subject::TowerResilience, Subject::Stack, Subject::Retry, Subject::Breaker];

/// Runs it where there are timers to register with. Nobody turns them, and none is meant to fire.
pub(super) fn with_timers<T>(run: impl FnOnce() -> Result<T, BoxError>) -> Result<T, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let _entered = runtime.enter();
    run()
}

/// Nanoseconds of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    /// The client's share included.
    pub(super) whole: f64,
    /// Beyond the bare client, measured in the same rounds.
    pub(super) extra: f64,
}

pub(super) fn times(path: Path) -> Result<BTreeMap<Scenario, Time>, BoxError> {
    with_timers(|| {
        let scenarios: Vec<_> = path.subjects().iter().map(|it| Scenario::new(*it, path)).collect();
        let mut runs = Vec::new();
        for scenario in &scenarios {
            let mut caller = caller(*scenario)?;
            runs.push(move || time(|| caller.call(CALLS)) / f64::from(CALLS));
        }
        let rounds = in_turns(&mut runs);
        let bare = rounds.first().cloned().unwrap_or_default();
        let times = rounds.into_iter().map(|of_one| {
            let extra = of_one.iter().zip(&bare).map(|(with, without)| with - without).collect();
            Time { whole: median(of_one), extra: median(extra) }
        });
        Ok(scenarios.into_iter().zip(times).collect())
    })
}

/// Nanoseconds of a call on one thread, and on each of two that share the service.
pub(super) fn threads() -> Result<BTreeMap<Subject, [f64; 2]>, BoxError> {
    with_timers(|| {
        let mut runs: Vec<Box<dyn FnMut() -> f64>> = Vec::new();
        for subject in SHARED {
            let shared = caller(Scenario::new(subject, Path::Ready))?;
            let other = shared.another();
            runs.push(Box::new(move || together(&*other, 1)));
            runs.push(Box::new(move || together(&*shared, 2)));
        }
        let figures: Vec<_> = in_turns(&mut runs).into_iter().map(median).collect();
        let pairs = figures.chunks_exact(2).filter_map(|pair| <[f64; 2]>::try_from(pair).ok());
        Ok(SHARED.into_iter().zip(pairs).collect())
    })
}

fn together(shared: &dyn Caller, threads: usize) -> f64 {
    let runtime = Handle::current();
    let start = Barrier::new(threads);
    let mine: Vec<_> = (0..threads).map(|_| shared.another()).collect();
    let all: f64 = thread::scope(|scope| {
        let run = |mut caller: Box<dyn Caller>| {
            let _entered = runtime.enter();
            caller.call(CALLS / 10);
            start.wait();
            time(|| caller.call(CALLS_OF_A_THREAD)) / f64::from(CALLS_OF_A_THREAD)
        };
        let running: Vec<_> =
            mine.into_iter().map(|caller| scope.spawn(move || run(caller))).collect();
        running.into_iter().filter_map(|it| it.join().ok()).sum()
    });
    all / threads as f64
}

/// Takes turns, so that whatever else the machine does falls on all alike; the rounds of each.
pub(super) fn in_turns<F: FnMut() -> f64>(runs: &mut [F]) -> Vec<Vec<f64>> {
    let mut figures = vec![Vec::with_capacity(ROUNDS); runs.len()];
    for _ in 0..ROUNDS {
        for (run, figures) in runs.iter_mut().zip(&mut figures) {
            figures.push(run());
        }
    }
    figures
}

pub(super) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Nanoseconds.
pub(super) fn time<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    std::hint::black_box(run());
    let took: Duration = start.elapsed();
    took.as_nanos() as f64
}
