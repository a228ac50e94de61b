//! Every default, and why it is what it is. The breaker's are on [`crate::breaker::Rules`].

use std::time::Duration;

use crate::backoff::{Backoff, Curve, Jitter};
use crate::classify::Statuses;
use crate::ratio::Ratio;

/// Three, the first included: a third attempt still turns 10 % of faults into 0.1 %, a fourth
/// adds load where it no longer helps.
pub const ATTEMPTS: u32 = 3;

/// 100 ms doubling to 10 s, full jitter: the first retry comes within a blip, the cap matters to
/// policies with many attempts, and full jitter makes the least work for a server in trouble.
pub const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(100),
    curve: Curve::Exponential { factor: 2.0 },
    cap: Duration::from_secs(10),
    jitter: Jitter::Full,
};

/// What another attempt may not meet again: the server timed out or asked for patience (408, 425,
/// 429), or it, or something before it, is in trouble (500, 502, 503, 504).
pub const RETRY_ON: Statuses = Statuses::TRANSIENT;

/// What waiting never changes; a policy that retries one of these is refused.
pub const NEVER_RETRY: Statuses = Statuses::NONE
    .with(400)
    .with(401)
    .with(403)
    .with(404)
    .with(405)
    .with(409)
    .with(410)
    .with(411)
    .with(413)
    .with(414)
    .with(415)
    .with(417)
    .with(422)
    .with(431)
    .with(451)
    .with(501)
    .with(505)
    .with(506)
    .with(508)
    .with(510)
    .with(511);

/// Thirty seconds: about as long as a person, or the proxy in front, waits.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Ten seconds: a third of the total, so that three attempts fit.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// A fifth: carries 10 % of faults at 99.8 % success, and never adds more than a fifth to a load.
pub const BUDGET_RATIO_PERCENT: u32 = 20;

/// One retry in five seconds comes without any success: enough for a quiet process, and with a
/// thousand processes on one dependency still only 200 a second between them.
pub const BUDGET_FLOOR: f64 = 0.2;

/// One second: a caller that waits longer for its turn is better told so.
pub const CONCURRENCY_WAIT: Duration = Duration::from_secs(1);

pub(super) fn budget_ratio() -> Ratio {
    Ratio::from_percent(BUDGET_RATIO_PERCENT).unwrap_or(Ratio::ZERO)
}
