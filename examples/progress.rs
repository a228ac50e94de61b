//! What is going on, on stderr, while the storm runs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::tally::{Plan, Tally};

/// Seconds between two lines where a line cannot be rewritten.
const PLAIN_EVERY: u32 = 5;

/// Rewrites one line each second on a terminal; elsewhere writes a plain one now and then. Never ends by itself.
pub async fn show(plan: Plan, start: Instant, clients: Vec<(&'static str, Arc<Tally>)>) {
    let terminal = io::stderr().is_terminal();
    let _erase = Erase(terminal);
    for second in 1.. {
        sleep_until(start + Duration::from_secs(second.into())).await;
        if !terminal && second % PLAIN_EVERY != 0 {
            continue;
        }
        let mut line = format!("{second:>3} s {:<8}", phase(&plan, second));
        for (name, tally) in &clients {
            let last = |counts: Vec<u32>| counts.get(second as usize - 1).copied().unwrap_or(0);
            let _ =
                write!(line, "  {name} {:>3}/{:<3}", last(tally.goodput()), last(tally.attempts()));
        }
        // Progress that cannot be shown is no reason to end the run.
        let _ = if terminal {
            write!(io::stderr(), "\r{line}\x1b[K")
        } else {
            writeln!(io::stderr(), "{line}")
        };
    }
}

fn phase(plan: &Plan, second: u32) -> &'static str {
    if second <= plan.health {
        "health"
    } else if second <= plan.release() {
        "outage"
    } else if second <= plan.end() {
        "recovery"
    } else {
        "ending"
    }
}

/// Clears the line when the progress is over, so that the report starts on a clean one.
struct Erase(bool);

impl Drop for Erase {
    fn drop(&mut self) {
        if self.0 {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
