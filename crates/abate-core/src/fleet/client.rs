use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::message::{MICRO, MOST, Message, Reply};
use super::store::StoreFailure;
use super::terms::Terms;
use crate::budget::{Budget, Desk, Leased, ONE, OWN_SHARE, Rules};
use crate::rng::{Seed, Stream};

/// The least time between two messages of a process that is short of tokens.
const KICK_GAP: Duration = Duration::from_millis(50);

/// From so many messages per second, in millionths, those who are short ask less often.
const BUSY: u64 = 1_000 * MICRO;

/// Fewer retries than this in an interval are not leased ahead: of many processes that each do so
/// now and then, most would lease what another one needs.
const FEWEST_LEASED: u64 = 2;

/// Billionths of a token in a millionth.
const UNIT: u64 = ONE / MICRO;

/// A process's side of a fleet's budget.
///
/// Whoever drives it asks [`due`](Self::due) when the next message is, takes it with
/// [`message`](Self::message), carries it to the pool, and tells what came of it. The [`Budget`] that it
/// serves works at any time, also if nobody ever drives it: it then goes by what the process earns itself.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use abate_core::fleet::{ClientCore, PoolCore, Terms};
/// use abate_core::policy::Policy;
/// use abate_core::rng::Seed;
/// # fn micros(_: Instant) -> u64 { 1_000_000 }
///
/// let now = Instant::now();
/// let rules = Policy::default().budget();
/// let terms = Terms::new(rules.ratio, 10.0)?;
/// let mut client = ClientCore::new(rules, terms, Seed::random(), now);
/// let mut pool = PoolCore::default();
///
/// client.budget().count_call(now);
/// let later = client.due(now).expect("nothing is on its way");
/// if let Some(message) = client.message(later) {
///     client.answered(message.number, &pool.exchange(&terms, micros(later), &message), later);
/// }
/// assert_eq!(client.processes(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ClientCore {
    budget: Budget,
    desk: Arc<Desk>,
    terms: Terms,
    stream: Stream,
    /// The message that is on its way, and what it carries, in billionths.
    on_its_way: Option<(u64, u64)>,
    sent: u64,
    /// When the next message is, and the last one was.
    next: Instant,
    last: Option<Instant>,
    kick_gap: Duration,
    /// Retries that were asked for in the last whole interval, and when it ended.
    asked: u64,
    asked_at: Instant,
    failures: u32,
    generation: u64,
    epoch: u64,
    processes: u64,
    /// Whether it has said farewell.
    left: bool,
}

impl ClientCore {
    /// A process that joins at `now`, with what `rules` say of its retries. Floor and start are the
    /// fleet's own, and the ratio is that of the terms.
    #[must_use]
    pub fn new(rules: Rules, terms: Terms, seed: Seed, now: Instant) -> Self {
        let rules = Rules { ratio: terms.ratio(), ..rules };
        let (budget, desk) = Budget::with_desk(rules, terms.interval(), now);
        let mut client = Self {
            budget,
            desk,
            terms,
            stream: seed.stream(0),
            on_its_way: None,
            sent: 0,
            next: now,
            last: None,
            kick_gap: KICK_GAP,
            asked: 0,
            asked_at: now,
            failures: 0,
            generation: 0,
            epoch: 0,
            processes: 0,
            left: false,
        };
        client.next = now + client.jittered(terms.interval());
        client
    }

    /// The budget to pay retries from; all its clones are the same.
    #[must_use]
    pub const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What the fleet has agreed on.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The processes that share the budget, as last heard; 0 before the pool has answered.
    #[must_use]
    pub const fn processes(&self) -> u64 {
        self.processes
    }

    /// The exchanges that failed since the last one that did not.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The tokens that this process holds, its own and leased, without those that a retry has taken.
    #[must_use]
    pub fn tokens(&self, now: Instant) -> f64 {
        let leased = self.desk.leased(self.budget.ledger().since_base(now));
        self.budget.tokens(now) + leased as f64 / ONE as f64
    }

    /// When there may be a message; `None` while one is on its way.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        if self.on_its_way.is_some() {
            return None;
        }
        Some(if self.is_short(now) { self.next.min(self.kick()) } else { self.next })
    }

    /// Wakes `carrier` once, when a retry opens a ticket: [`due`](Self::due) may be earlier then.
    pub fn wake_when_short(&self, carrier: &Waker) {
        self.desk.wake_at_ticket(carrier);
    }

    /// What to tell the pool at `now`; `None` if that is nothing, or not due.
    ///
    /// To be called at each [`due`](Self::due), also if nothing comes of it: it shows that somebody
    /// would carry a message.
    pub fn message(&mut self, now: Instant) -> Option<Message> {
        if self.due(now).is_none_or(|due| due > now) {
            return None;
        }
        self.budget.ledger().fold(now);
        let at = self.budget.ledger().since_base(now);
        self.desk.note_carried(at);
        self.desk.judge(at);
        self.measure_demand(now);
        self.next = now + self.jittered(self.interval());
        // Also if nothing comes of it: else a ticket that needs no message would be due for ever.
        self.last = Some(now);

        let deposit = if self.failures == 0 { self.take_surplus(at) } else { 0 };
        let calls = (self.desk.take_calls() * MICRO as f64).floor() as u64;
        let want = if self.desk.answers(at) { self.want(at) } else { 0 };
        if deposit == 0 && calls == 0 && want == 0 && self.failures == 0 {
            return None;
        }
        Some(self.send(deposit, calls.min(MOST), want))
    }

    /// The last message: what this process holds goes to the others. It earns and spends by itself
    /// after it.
    pub fn farewell(&mut self, now: Instant) -> Option<Message> {
        self.budget.ledger().fold(now);
        let at = self.budget.ledger().since_base(now);
        let own = self.budget.ledger().take_above(0, UNIT, MOST);
        let leased = self.desk.end_lease(at) / UNIT * UNIT;
        let deposit = own.saturating_add(leased).min(MOST * UNIT);
        self.left = true;
        self.note_failures();
        (deposit > 0).then(|| self.send(deposit, 0, 0))
    }

    /// The pool answered message `number`. Whatever does not answer the last message is passed over:
    /// it came too late, and counts as lost already.
    pub fn answered(&mut self, number: u64, reply: &Reply, now: Instant) {
        if self.on_its_way.take_if(|(on_its_way, _)| *on_its_way == number).is_none() {
            return;
        }
        self.budget.ledger().fold(now);
        let at = self.budget.ledger().since_base(now);
        self.failures = 0;
        (self.generation, self.epoch) = (reply.generation, reply.epoch);
        self.processes = reply.processes.max(1);
        self.kick_gap = kick_gap(reply.load);
        let floor = self.terms.floor() as f64 / MICRO as f64 / self.processes as f64;
        let desk = &self.desk;
        desk.set_floor(floor);
        self.note_failures();
        desk.judge(at);
        desk.receive(
            Leased {
                tokens: u32::try_from(reply.grant).unwrap_or(u32::MAX),
                first: at.saturating_add(reply.first.saturating_mul(1_000)),
                gap: reply.gap.saturating_mul(1_000),
                more: reply.stock >= MICRO,
            },
            at,
        );
    }

    /// Message `number` was not answered. What it carried comes back only if the store cannot have it.
    pub fn failed(&mut self, number: u64, failure: StoreFailure, now: Instant) {
        let Some((_, carried)) = self.on_its_way.take_if(|(on_its_way, _)| *on_its_way == number)
        else {
            return;
        };
        self.budget.ledger().fold(now);
        match failure {
            StoreFailure::Unsent | StoreFailure::Refused => {
                self.budget.ledger().return_tokens(carried);
            }
            StoreFailure::Unknown => {}
        }
        self.failures = self.failures.saturating_add(1);
        self.note_failures();
        self.desk.judge(self.budget.ledger().since_base(now));
        self.next = now + self.jittered(self.interval());
    }

    fn note_failures(&self) {
        self.desk.note_failures(if self.left { u32::MAX } else { self.failures });
    }

    fn send(&mut self, deposit: u64, calls: u64, want: u64) -> Message {
        self.sent += 1;
        self.on_its_way = Some((self.sent, deposit));
        Message {
            number: self.sent,
            deposit: deposit / UNIT,
            calls,
            want,
            generation: self.generation,
            epoch: self.epoch,
        }
    }

    fn is_short(&self, now: Instant) -> bool {
        self.desk.answers(self.budget.ledger().since_base(now)) && self.desk.open() > 0
    }

    /// The earliest moment at which a process that is short may ask.
    fn kick(&self) -> Instant {
        self.last.map_or(self.asked_at, |last| last + self.kick_gap)
    }

    /// After a failure twice as often, to be back within a second.
    fn interval(&self) -> Duration {
        if self.failures == 0 { self.terms.interval() } else { self.terms.interval() / 2 }
    }

    /// From four to six fifths of `interval`, so that a fleet that was started at once does not
    /// send at once.
    fn jittered(&mut self, interval: Duration) -> Duration {
        interval * 4 / 5 + self.stream.up_to(interval * 2 / 5)
    }

    fn measure_demand(&mut self, now: Instant) {
        if now.saturating_duration_since(self.asked_at) >= self.terms.interval() * 4 / 5 {
            let asked = u64::from(self.desk.take_asked());
            self.asked = if asked < FEWEST_LEASED { 0 } else { asked };
            self.asked_at = now;
        }
    }

    /// What this process cannot send at its own pace before the next message: there, another one can.
    fn take_surplus(&self, at: u64) -> u64 {
        let ledger = self.budget.ledger();
        let pace = self.terms.ratio().as_f64() * ledger.rate() * OWN_SHARE;
        let hold = (pace * self.terms.interval().as_secs_f64()).floor() as u64 * ONE;
        let leased = self.desk.leased(at);
        ledger.take_above(hold.saturating_sub(leased), UNIT, MOST)
    }

    /// What is asked for now, and what will be before the next message and is not here.
    fn want(&self, at: u64) -> u64 {
        let here = (self.budget.ledger().tokens() * ONE as f64) as u64;
        let leased = self.desk.leased(at);
        let ahead = self.asked.saturating_mul(ONE).saturating_sub(here);
        let open = self.desk.open().saturating_mul(ONE);
        open.saturating_add(ahead).saturating_sub(leased).div_ceil(ONE).min(MOST / MICRO)
    }
}

/// The more messages the pool gets, the further apart are those of a process that is short.
fn kick_gap(load: u64) -> Duration {
    let busy = (load as f64 / BUSY as f64).max(1.0);
    KICK_GAP.mul_f64((busy * busy).min(100.0))
}
