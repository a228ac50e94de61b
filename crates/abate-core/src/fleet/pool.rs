use std::cmp::{max, min};

use super::message::{MICRO, MOST, Message, Reply};
use super::terms::Terms;
use crate::budget::{FLEET_RATE_TAU, OWN_SHARE};
use crate::decay::decay;

/// How long a process counts as one of the fleet after its last message, at least, in microseconds.
const EPOCH: u64 = 10 * MICRO;

/// A pool that no message reached for so many time constants is forgotten: what it held has faded.
const FORGOTTEN_AFTER: u64 = 6;

const RATE_TAU: u64 = FLEET_RATE_TAU.as_micros() as u64;

/// The largest part of the stock that one message may get, so that those who ask later get some.
const LARGEST_PART: f64 = 1.0 / 8.0;

/// The fleet's side of one budget: takes what processes have to spare, and gives it to those who ask.
///
/// A store may keep the same state and do the same arithmetic in a language of its own: doubles, + − ×
/// ÷ and rounding down, in the same order, give the same bits.
///
/// # Examples
///
/// ```
/// use abate_core::fleet::{Message, PoolCore, Terms};
/// use abate_core::ratio::Ratio;
///
/// let terms = Terms::new(Ratio::new(0.2)?, 10.0)?;
/// let mut pool = PoolCore::default();
/// let spare = Message { deposit: 3_000_000, ..Message::default() };
/// assert_eq!(pool.exchange(&terms, 1_000_000, &spare).stock, 13_000_000);
///
/// let short = Message { want: 1, ..Message::default() };
/// assert_eq!(pool.exchange(&terms, 1_000_000, &short).grant, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolCore(Option<State>);

/// What a pool remembers, in millionths and microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct State {
    /// Tokens.
    pub stock: u64,
    /// Calls per second.
    pub rate: u64,
    /// Slots that are taken and have not drained yet.
    pub level: u64,
    /// Messages per second.
    pub load: u64,
    /// When the last message came.
    pub at: u64,
    /// When the pool began.
    pub generation: u64,
    /// The number of the present count of processes, the count, and the one before.
    pub epoch: u64,
    /// Processes counted in this epoch.
    pub counted: u64,
    /// Processes counted in the epoch before.
    pub before: u64,
}

impl PoolCore {
    /// Takes a message at `now`, in microseconds of the pool's clock, which may jump.
    pub fn exchange(&mut self, terms: &Terms, now: u64, message: &Message) -> Reply {
        let known = self.0.filter(|state| {
            now.saturating_sub(state.at) <= FORGOTTEN_AFTER.saturating_mul(terms.tau())
        });
        let mut state = known.unwrap_or_else(|| State::new(terms, now));
        let reply = state.exchange(terms, now, message);
        self.0 = Some(state);
        reply
    }

    /// Forgets everything, as a store does that is restarted or emptied.
    pub fn forget(&mut self) {
        self.0 = None;
    }

    /// What it remembers; `None` before the first message.
    #[must_use]
    pub const fn state(&self) -> Option<&State> {
        self.0.as_ref()
    }
}

impl State {
    fn new(terms: &Terms, now: u64) -> Self {
        Self {
            stock: terms.floor(),
            rate: 0,
            level: 0,
            load: 0,
            at: now,
            generation: now,
            epoch: now / EPOCH,
            counted: 0,
            before: 0,
        }
    }

    fn exchange(&mut self, terms: &Terms, now: u64, message: &Message) -> Reply {
        let dt = now.saturating_sub(self.at);
        // Also when the clock was set back: else everything would stand still until it is made up.
        self.at = now;
        self.fade(terms, dt, message);
        self.count(now, message);
        let processes = max(max(self.counted, self.before), 1);
        let pace = pace(terms, self.rate);
        self.level = self.level.saturating_sub(whole(dt as f64 * pace as f64 / MICRO as f64));

        let grant = self.grant(message.want, processes, pace);
        let (first, gap) = times(self.level, pace);
        self.level += grant * MICRO;
        self.stock -= grant * MICRO;
        Reply {
            grant,
            first,
            gap,
            stock: self.stock,
            processes,
            epoch: self.epoch,
            generation: self.generation,
            load: self.load,
            now,
        }
    }

    fn fade(&mut self, terms: &Terms, dt: u64, message: &Message) {
        let kept = decay(dt as f64 / terms.tau() as f64);
        let income = terms.floor() as f64 * (terms.tau() as f64 / MICRO as f64) * (1.0 - kept);
        let stock = whole(self.stock as f64 * kept + income);
        self.stock = min(stock + min(message.deposit, MOST), MOST);

        let kept = decay(dt as f64 / RATE_TAU as f64);
        let per_second = RATE_TAU as f64 / MICRO as f64;
        let rate = self.rate as f64 * kept + min(message.calls, MOST) as f64 / per_second;
        self.rate = min(whole(rate), MOST);
        self.load = whole(self.load as f64 * kept + MICRO as f64 / per_second);
    }

    /// Counts whoever is not in this epoch's count yet.
    fn count(&mut self, now: u64, message: &Message) {
        let epoch = now / EPOCH;
        if epoch != self.epoch {
            let follows = epoch == self.epoch + 1 || epoch < self.epoch;
            self.before = if follows { self.counted } else { 0 };
            self.counted = 0;
            self.epoch = epoch;
        }
        if message.generation != self.generation || message.epoch != epoch {
            self.counted += 1;
        }
    }

    /// Whole tokens: no more than a fair part of the stock (but one, if there is one), and no more
    /// than can be sent within a second.
    fn grant(&self, want: u64, processes: u64, pace: u64) -> u64 {
        let part = f64::max(LARGEST_PART, 1.0 / processes as f64);
        let fair = max(MICRO, whole(self.stock as f64 * part));
        let sent_in_time = (pace + MICRO).saturating_sub(self.level);
        min(min(fair, self.stock), sent_in_time).div_euclid(MICRO).min(want)
    }
}

/// Slots per second that the pool gives, in millionths.
fn pace(terms: &Terms, rate: u64) -> u64 {
    let ratio = f64::from(terms.ratio().parts_per_billion());
    whole(rate as f64 * ratio * (1.0 - OWN_SHARE) / 1e9) + terms.floor()
}

/// Microseconds until the first slot above `level`, and from one to the next.
fn times(level: u64, pace: u64) -> (u64, u64) {
    if pace == 0 {
        return (0, MICRO);
    }
    let micros = |amount: u64| (amount as f64 * MICRO as f64 / pace as f64).ceil() as u64;
    (micros(level), micros(MICRO))
}

fn whole(number: f64) -> u64 {
    number.floor() as u64
}
