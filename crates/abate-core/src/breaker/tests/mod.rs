mod clock;
mod closed;
mod generations;
mod half_open;
mod modes;
mod open;
mod slow_calls;
mod slow_start;
mod traffic;

use std::time::{Duration, Instant};

use super::{Admitted, Breaker, Permit, Refused, Rules, State, Tail, Transition};
use crate::classify::Health;
use crate::rng::Seed;

/// A breaker and the time.
struct Rig {
    breaker: Breaker,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self::with(Rules::default())
    }

    fn with(rules: Rules) -> Self {
        Self::seeded(rules, 1)
    }

    fn seeded(rules: Rules, seed: u64) -> Self {
        let now = base();
        Self { breaker: Breaker::new(rules, Seed::new(seed), now), now }
    }

    /// One that has just opened.
    fn open() -> Self {
        let mut rig = Self::new();
        rig.trip();
        rig
    }

    /// One whose open time is over, so that the next to ask is a probe.
    fn due() -> Self {
        Self::due_with(Rules::default())
    }

    fn due_with(rules: Rules) -> Self {
        let mut rig = Self::with(rules);
        rig.trip();
        rig.wait_until_due();
        rig
    }

    /// One that has closed again and is in slow start.
    fn slow_start() -> Self {
        Self::slow_start_with(Rules::default())
    }

    fn slow_start_with(rules: Rules) -> Self {
        let mut rig = Self::due_with(rules);
        rig.close();
        rig
    }

    fn wait(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn ask(&self) -> Result<Admitted, Refused> {
        self.breaker.admit(self.now)
    }

    #[track_caller]
    fn admitted(&self) -> Permit {
        self.ask().expect("let through").permit
    }

    #[track_caller]
    fn refused(&self) -> Refused {
        self.ask().expect_err("refused")
    }

    #[track_caller]
    fn call(&self, health: Health) -> Option<Transition> {
        self.end(self.admitted(), health)
    }

    #[track_caller]
    fn calls(&self, number: u32, health: Health) {
        for n in 1..=number {
            assert_eq!(self.call(health), None, "at number {n} of {number}");
        }
    }

    fn end(&self, permit: Permit, health: Health) -> Option<Transition> {
        permit.record(health, self.now, self.now).1
    }

    fn end_with_body(&self, permit: Permit, health: Health) -> Tail {
        permit.record(health, self.now, self.now).0.expect("it counted, and was no failure")
    }

    fn state(&self) -> State {
        self.breaker.state()
    }

    /// Fails until it opens, from whatever state lets calls through.
    #[track_caller]
    fn trip(&mut self) -> Transition {
        for _ in 0..10 {
            if let Some(transition) = self.call(Health::Failure) {
                return transition;
            }
            self.wait(0.25);
        }
        panic!("ten failures in a row over two seconds do not open it");
    }

    /// Fails every `pause` seconds until it opens; how often that is.
    #[track_caller]
    fn fail_until_open(&mut self, pause: f64) -> u64 {
        for failures in 1..100_000 {
            if self.call(Health::Failure).is_some() {
                return failures;
            }
            self.wait(pause);
        }
        panic!("no number of failures opens it");
    }

    /// All who are let through at once.
    fn wave(&self) -> Vec<Permit> {
        (0..10_000).map_while(|_| self.ask().ok()).map(|admitted| admitted.permit).collect()
    }

    /// Lets the open time pass, to the nanosecond.
    #[track_caller]
    fn wait_until_due(&mut self) {
        self.now = self.refused().retry_at.expect("an open breaker says when it reopens");
    }

    /// Two probes succeed.
    #[track_caller]
    fn close(&mut self) {
        assert_eq!(self.call(Health::Success), None);
        let closed = self.call(Health::Success).expect("two of three probes are enough");
        assert_eq!((closed.from, closed.to), (State::HalfOpen, State::Closed));
        assert_eq!(closed.open_for, None);
    }

    /// Two probes fail; how long it opens for.
    #[track_caller]
    fn reopen(&mut self) -> Duration {
        assert_eq!(self.call(Health::Failure), None);
        self.call(Health::Failure).and_then(|it| it.open_for).expect("two failures of three open")
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[expect(clippy::disallowed_methods, reason = "the only way to an `Instant`; read once a test")]
fn base() -> Instant {
    Instant::now()
}

/// Seeded choices.
struct Dice(crate::rng::Stream);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Seed::new(seed).stream(0))
    }

    /// One of `0..sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0.up_to(Duration::from_nanos(sides - 1)).as_nanos() as u64
    }

    /// Even over `0.0..=1.0`.
    fn share(&mut self) -> f64 {
        self.0.up_to(Duration::from_secs(1)).as_secs_f64()
    }
}
