use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::rules::Rules;
use super::state::{Mode, Refused, State, Transition};
use super::trial::{Judgement, Probing, SlowStart};
use super::window::{Place, Window};
use super::word::{Phase, Word};
use crate::classify::Health;
use crate::deadline::{nanos, nanos_since};
use crate::rng::Seed;
use crate::sync::{AtomicU64, Mutex, MutexGuard};

/// The state word: a phase in the three low bits, the generation above.
///
/// Written only under the lock. The closed path reads it alone; everything else locks.
#[derive(Debug)]
pub(super) struct Machine {
    rules: Rules,
    seed: Seed,
    base: Instant,
    word: AtomicU64,
    /// When an open breaker lets a probe through, in nanoseconds from `base`.
    reopen: AtomicU64,
    window: Window,
    cold: Mutex<Cold>,
}

#[derive(Debug, Default)]
struct Cold {
    openings_in_a_row: u32,
    probing: Probing,
    slow_start: SlowStart,
}

/// When and as what a call was admitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    pub(super) generation: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Ordinary(Place),
    SlowStart(Place),
    Probe(u64),
}

/// When an outcome counted, if it did, and what it changed.
pub(super) type Recorded = (Option<Place>, Option<Transition>);

type Admission = Result<(Ticket, Option<Transition>), Refused>;

impl Machine {
    pub(super) fn new(rules: Rules, seed: Seed, now: Instant) -> Self {
        Self {
            rules,
            seed,
            base: now,
            word: AtomicU64::new(Word::new(0, Phase::Closed).bits()),
            reopen: AtomicU64::new(0),
            window: Window::new(&rules),
            cold: Mutex::default(),
        }
    }

    #[inline]
    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn state(&self) -> State {
        self.word().state()
    }

    pub(super) fn generation(&self) -> u64 {
        self.word().generation()
    }

    /// Admits to a closed breaker, as nearly every call is; or says at which moment it was not.
    #[inline(always)]
    pub(super) fn admit(&self, now: Instant) -> Result<Ticket, u64> {
        let word = self.word();
        let at = self.since_base(now);
        match word.phase() {
            Phase::Closed | Phase::Disabled | Phase::ObserveOnly => {
                Ok(self.admit_ordinary(word, at))
            }
            _ => Err(at),
        }
    }

    /// Admits to any other.
    pub(super) fn admit_other(&self, at: u64) -> Admission {
        // Acquire of the word has made the moment that belongs to it visible.
        if self.word().phase() == Phase::Open && at < self.reopen.load(Ordering::Relaxed) {
            return Err(self.refuse(None));
        }
        self.admit_slowly(at)
    }

    #[inline]
    fn admit_ordinary(&self, word: Word, at: u64) -> Ticket {
        let place = self.window.place(word.generation(), at);
        self.window.admit(place);
        Ticket { generation: word.generation(), kind: Kind::Ordinary(place) }
    }

    fn admit_slowly(&self, at: u64) -> Admission {
        let mut cold = self.lock();
        let mut transition = None;
        // Relaxed: under the lock, and only ever written there.
        if self.word().phase() == Phase::Open && at >= self.reopen.load(Ordering::Relaxed) {
            cold.probing.begin();
            transition = Some(self.enter(Phase::HalfOpen, None));
        }
        let refused = Refused { retry_at: None, transition };
        let word = self.word();
        let generation = word.generation();
        match word.phase() {
            Phase::Closed | Phase::Disabled | Phase::ObserveOnly => {
                Ok((self.admit_ordinary(word, at), transition))
            }
            Phase::ForcedOpen => Err(refused),
            Phase::Open => Err(self.refuse(transition)),
            Phase::HalfOpen => {
                if cold.probing.expire(&self.rules, at) == Judgement::Open {
                    return Err(self.refuse(Some(self.open(&mut cold, at))));
                }
                let probe = cold.probing.admit(&self.rules, at).ok_or(refused)?;
                Ok((Ticket { generation, kind: Kind::Probe(probe) }, transition))
            }
            Phase::SlowStart if cold.slow_start.is_over(&self.rules, at) => {
                cold.openings_in_a_row = 0;
                self.publish(Word::new(generation, Phase::Closed));
                Ok((self.admit_ordinary(self.word(), at), transition))
            }
            Phase::SlowStart => {
                if !cold.slow_start.admit(&self.rules, at) {
                    return Err(refused);
                }
                let place = self.window.place(generation, at);
                self.window.admit(place);
                Ok((Ticket { generation, kind: Kind::SlowStart(place) }, transition))
            }
        }
    }

    /// Records the success of a healthy dependency, which is nearly every outcome there is. Says in
    /// which bucket, or at which moment it was something else.
    #[inline(always)]
    pub(super) fn succeed(
        &self,
        generation: u64,
        health: Health,
        sent: Instant,
        now: Instant,
    ) -> Result<Place, u64> {
        let at = self.since_base(now);
        let closed = self.word() == Word::new(generation, Phase::Closed);
        if !closed || health != Health::Success || self.rules.is_slow(sent, now) {
            return Err(at);
        }
        let place = self.window.place(generation, at);
        self.window.succeed(place);
        Ok(place)
    }

    /// Records any other outcome.
    pub(super) fn record(
        &self,
        ticket: Ticket,
        health: Health,
        sent: Instant,
        now: Instant,
        at: u64,
    ) -> Recorded {
        let slow = self.rules.is_slow(sent, now);
        let (counted, transition) = self.record_unusual(ticket, health, slow, at);
        (counted.then(|| self.window.place(ticket.generation, at)), transition)
    }

    /// Says whether it counted, and what it changed.
    fn record_unusual(
        &self,
        ticket: Ticket,
        health: Health,
        slow: bool,
        at: u64,
    ) -> (bool, Option<Transition>) {
        let word = self.word();
        let phase = word.phase();
        if word.generation() != ticket.generation || phase == Phase::Disabled {
            return (false, None);
        }
        if matches!(phase, Phase::SlowStart | Phase::HalfOpen) {
            return self.record_trial(ticket, health, slow, at);
        }
        if !self.record_in_window(ticket, health, slow, at) {
            return (true, None);
        }
        let mut cold = self.lock();
        let still = self.word() == word;
        (true, still.then(|| self.open(&mut cold, at)))
    }

    fn record_trial(
        &self,
        ticket: Ticket,
        health: Health,
        slow: bool,
        at: u64,
    ) -> (bool, Option<Transition>) {
        let mut cold = self.lock();
        let word = self.word();
        if word.generation() != ticket.generation {
            return (false, None);
        }
        let judgement = match (word.phase(), ticket.kind) {
            (Phase::HalfOpen, Kind::Probe(probe)) => {
                let expired = cold.probing.expire(&self.rules, at);
                let Some(judgement) = cold.probing.record(&self.rules, probe, health, slow) else {
                    return (false, self.carry_out(&mut cold, expired, at));
                };
                if expired == Judgement::Open { expired } else { judgement }
            }
            (Phase::SlowStart, _) => {
                let evidence = self.record_in_window(ticket, health, slow, at);
                let judgement = cold.slow_start.record(&self.rules, health);
                if evidence { Judgement::Open } else { judgement }
            }
            // Slow start ended between the two looks at the word.
            (_, _) if self.record_in_window(ticket, health, slow, at) => Judgement::Open,
            _ => Judgement::Undecided,
        };
        (true, self.carry_out(&mut cold, judgement, at))
    }

    /// Counts an outcome, and says whether the evidence trips the breaker.
    fn record_in_window(&self, ticket: Ticket, health: Health, slow: bool, at: u64) -> bool {
        let generation = ticket.generation;
        let failures = match health {
            Health::Failure => self.window.fail(&self.rules, generation, at),
            Health::Success => {
                self.window.succeed(self.window.place(generation, at));
                false
            }
            Health::Answered | Health::Unknown => {
                self.discount(ticket.kind);
                return false;
            }
        };
        failures || (slow && self.window.slow(&self.rules, generation, at))
    }

    /// A permit was dropped without a word, and without a clock.
    pub(super) fn release(&self, ticket: Ticket) {
        let closed = Word::new(ticket.generation, Phase::Closed);
        if self.word() == closed {
            return self.discount(ticket.kind);
        }
        let mut cold = self.lock();
        let word = self.word();
        if word.generation() != ticket.generation {
            return;
        }
        match ticket.kind {
            Kind::Probe(probe) => {
                cold.probing.record(&self.rules, probe, Health::Unknown, false);
            }
            kind => {
                self.discount(kind);
                if word.phase() == Phase::SlowStart {
                    cold.slow_start.record(&self.rules, Health::Unknown);
                }
            }
        }
    }

    /// The body of a call that was recorded broke: what was a success is a failure.
    pub(super) fn break_off(
        &self,
        generation: u64,
        recorded: Place,
        now: Instant,
    ) -> Option<Transition> {
        let at = self.since_base(now);
        let mut cold = self.lock();
        let word = self.word();
        if word.generation() != generation {
            return None;
        }
        let judgement = match word.phase() {
            Phase::HalfOpen => cold.probing.break_off(&self.rules),
            Phase::SlowStart | Phase::Closed | Phase::ObserveOnly => {
                self.window.take_back(recorded);
                let evidence = self.window.fail(&self.rules, generation, at);
                let judgement = match word.phase() {
                    Phase::SlowStart => cold.slow_start.break_off(&self.rules),
                    _ => Judgement::Undecided,
                };
                if evidence { Judgement::Open } else { judgement }
            }
            Phase::Open | Phase::ForcedOpen | Phase::Disabled => Judgement::Undecided,
        };
        self.carry_out(&mut cold, judgement, at)
    }

    fn discount(&self, kind: Kind) {
        if let Kind::Ordinary(place) | Kind::SlowStart(place) = kind {
            self.window.discount(place);
        }
    }

    fn carry_out(&self, cold: &mut Cold, judgement: Judgement, at: u64) -> Option<Transition> {
        match judgement {
            Judgement::Undecided => None,
            Judgement::Open => Some(self.open(cold, at)),
            Judgement::Close => {
                cold.slow_start.begin(at);
                Some(self.enter(Phase::SlowStart, None))
            }
        }
    }

    /// Opens, or in observe-only says that it would have.
    fn open(&self, cold: &mut Cold, at: u64) -> Transition {
        if self.word().phase() == Phase::ObserveOnly {
            return self.enter(Phase::ObserveOnly, Some(self.rules.open_time(1)));
        }
        cold.openings_in_a_row = cold.openings_in_a_row.saturating_add(1);
        let half = self.rules.open_time(cold.openings_in_a_row) / 2;
        let open_for = half + self.seed.stream(self.generation()).up_to(half);
        // Relaxed: published by the release of the word, below.
        self.reopen.store(at.saturating_add(nanos(open_for)), Ordering::Relaxed);
        self.enter(Phase::Open, Some(open_for))
    }

    fn enter(&self, phase: Phase, open_for: Option<Duration>) -> Transition {
        let from = self.word();
        let to = Word::new(from.generation() + 1, phase);
        self.publish(to);
        Transition { from: from.state(), to: to.state(), open_for }
    }

    /// What a handle asks for: a state that lasts until it asks for another.
    pub(super) fn set(&self, mode: Mode) -> Transition {
        let mut cold = self.lock();
        *cold = Cold::default();
        self.enter(
            match mode {
                Mode::Automatic => Phase::Closed,
                Mode::ForcedOpen => Phase::ForcedOpen,
                Mode::Disabled => Phase::Disabled,
                Mode::ObserveOnly => Phase::ObserveOnly,
            },
            None,
        )
    }

    fn refuse(&self, transition: Option<Transition>) -> Refused {
        // Relaxed: the word that said "open" was acquired.
        let reopen = Duration::from_nanos(self.reopen.load(Ordering::Relaxed));
        Refused { retry_at: self.base.checked_add(reopen), transition }
    }

    #[inline]
    fn word(&self) -> Word {
        // Acquire: what was written before the word was published, `reopen` above all, is seen.
        Word::of(self.word.load(Ordering::Acquire))
    }

    fn publish(&self, word: Word) {
        // Release: pairs with the acquire in `word`.
        self.word.store(word.bits(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Cold> {
        // A panic under the lock leaves plain figures behind, which are as good as any.
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn since_base(&self, now: Instant) -> u64 {
        nanos_since(self.base, now)
    }
}
