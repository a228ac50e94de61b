//! Processes that share one budget: what moves between them, and what never does.

mod fleets_store;
mod fleets_weather;

use std::time::Duration;

use abate::fleet::{Fleet, FleetError, Terms};
use abate::{Attempt, BudgetHandle, ErrorKind, Policy, Ratio, RetryBudgetLayer, RetryLayer};
use abate_tests::rig::get;
use abate_tests::script::{Answer, Script};
use fleets_store::Memory;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::{BoxError, Layer, ServiceExt};

type Tested = Result<(), BoxError>;

const NAME: &str = "payments";

/// One process.
struct Process {
    fleet: Fleet<Memory>,
    driver: JoinHandle<()>,
    budget: BudgetHandle,
    policy: Policy,
}

impl Process {
    fn of(store: &Memory, floor: f64) -> Result<Self, BoxError> {
        let fleet = Fleet::new(store.clone());
        let driver = tokio::spawn(fleet.drive());
        let policy = Policy::builder().with_attempts(2).build()?;
        let budget = fleet.budget(NAME, &policy, terms(floor)?)?;
        Ok(Self { fleet, driver, budget, policy })
    }

    fn retries(&self) -> RetryLayer {
        RetryLayer::new(self.policy.clone()).with_budget(self.budget.clone()).with_seed(1)
    }

    /// Calls that succeed, ten milliseconds apart.
    async fn succeeds(&self, calls: usize) -> Tested {
        let script = Script::of([Answer::status(200)]);
        for _ in 0..calls {
            self.retries().layer(script.clone()).oneshot(get()).await?;
            sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// One call that fails, and how often it was sent.
    async fn fails(&self) -> usize {
        let script = down();
        // The 503, or that the retry was refused after a wait.
        let _ = self.retries().layer(script.clone()).oneshot(get()).await;
        script.count()
    }
}

fn terms(floor: f64) -> Result<Terms, BoxError> {
    Ok(Terms::new(Ratio::new(0.2)?, floor)?)
}

fn down() -> Script {
    Script::of([Answer::status(503)])
}

#[tokio::test(start_paused = true)]
async fn a_process_that_fails_retries_with_what_another_one_has_earned() -> Tested {
    let store = Memory::new();
    let (well, ill) = (Process::of(&store, 0.0)?, Process::of(&store, 0.0)?);
    assert_eq!(ill.fails().await, 1, "nothing was earned yet");
    well.succeeds(500).await?;
    for _ in 0..5 {
        assert_eq!(ill.fails().await, 2);
    }
    assert!(well.budget.tokens() < 40.0, "what it does not need is not here");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_asks_the_fleet_waits_for_the_answer_and_not_long() -> Tested {
    let store = Memory::new();
    let (well, ill) = (Process::of(&store, 0.0)?, Process::of(&store, 0.0)?);
    well.succeeds(500).await?;
    for latency in [2, 40, 120] {
        store.pools().latency = Duration::from_millis(latency);
        sleep(Duration::from_millis(500)).await;
        let began = Instant::now();
        assert_eq!(ill.fails().await, 2, "{latency} ms");
        let took = began.elapsed();
        assert!(took <= Duration::from_millis(300), "{took:?} with {latency} ms");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_floor_is_the_fleets_whatever_the_number_of_its_processes() -> Tested {
    let store = Memory::new();
    let processes: Vec<_> = (0..20).map_while(|_| Process::of(&store, 2.0).ok()).collect();
    let mut retries = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        for process in &processes {
            retries += process.fails().await - 1;
        }
    }
    // Two a second and the second's worth that a pool begins with.
    assert!((40..=66).contains(&retries), "{retries}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_repeat_below_somebody_elses_retry_waits_for_its_ticket_too() -> Tested {
    let store = Memory::new();
    let (well, ill) = (Process::of(&store, 0.0)?, Process::of(&store, 0.0)?);
    well.succeeds(500).await?;
    let layer = RetryBudgetLayer::new(&ill.policy).with_budget(ill.budget.clone());
    let mut repeat = get();
    repeat.extensions_mut().insert(Attempt::new(2));
    let (script, began) = (down(), Instant::now());
    layer.layer(script.clone()).oneshot(repeat.clone()).await?;
    assert_eq!(script.count(), 1);
    assert!((100..=210).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());

    store.turns(fleets_store::Weather::Hangs);
    sleep(Duration::from_secs(20)).await;
    let refused = layer.layer(script.clone()).oneshot(repeat).await;
    assert!(refused.is_err_and(|error| matches!(error.kind(), ErrorKind::RetryRefused(_))));
    assert_eq!(script.count(), 1, "not sent");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn budgets_of_one_store_go_in_one_exchange_and_one_at_a_time() -> Tested {
    let store = Memory::new();
    store.pools().latency = Duration::from_millis(80);
    let process = Process::of(&store, 5.0)?;
    let policy = Policy::default();
    let mut budgets = Vec::new();
    for name in ["a", "b", "c", "d"] {
        budgets.push(process.fleet.budget(name, &policy, terms(5.0)?)?);
    }
    for _ in 0..10 {
        for budget in &budgets {
            let layer = RetryLayer::new(policy.clone()).with_budget(budget.clone());
            drop(tokio::spawn(layer.layer(down()).oneshot(get())));
        }
        sleep(Duration::from_secs(1)).await;
    }
    let pools = store.pools();
    assert_eq!((pools.together, pools.most_open), (4, 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_hands_over_what_the_process_holds() -> Tested {
    let store = Memory::new();
    let process = Process::of(&store, 0.0)?;
    process.succeeds(500).await?;
    let (held, before) = (process.budget.tokens(), store.stock(NAME));
    assert!(held > 3.0, "{held}");
    process.fleet.shutdown().await;
    process.driver.await?;
    assert!(process.budget.tokens() < 0.001);
    assert!(store.stock(NAME) > before * 0.8 + held * 0.99, "{} in the pool", store.stock(NAME));
    let late = process.fleet.budget("late", &process.policy, terms(0.0)?);
    assert_eq!(late.err(), Some(FleetError::Closed));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_name_is_one_budget_and_other_terms_are_an_error() -> Tested {
    let fleet = Fleet::new(Memory::new());
    let policy = Policy::default();
    let one = fleet.budget(NAME, &policy, terms(1.0)?)?;
    let same = fleet.budget(NAME, &policy, terms(1.0)?)?;
    let layer = RetryLayer::new(policy.clone()).with_budget(one);
    layer.layer(Script::of([Answer::status(200)])).oneshot(get()).await?;
    assert!((same.tokens() - 0.2).abs() < 1e-9);
    let taken = fleet.budget(NAME, &policy, terms(2.0)?).err();
    assert_eq!(taken, Some(FleetError::Taken(NAME.into())));
    let other = Policy::builder().with_attempts(7).build()?;
    assert_eq!(fleet.budget(NAME, other, terms(1.0)?).err(), Some(FleetError::Taken(NAME.into())));
    assert_eq!(fleet.budget(" ", &policy, terms(1.0)?).err(), Some(FleetError::Unnamed));
    assert!(format!("{fleet:?}").contains("payments"), "{fleet:?}");
    Ok(())
}
