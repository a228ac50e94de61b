use std::io::{self, Write};

use abate_core::backoff::{Curve, Jitter};
use abate_core::budget::Earn;
use abate_core::config::Declared;

use super::facts::Facts;
use super::load::Load;
use super::schedule::{Cap, Schedule, Wait};
use crate::figures::{number, time, times};
use crate::terminal::{ASIDE, TITLE, WARNING, table};

/// Retries shown before and after a gap, where there are many.
const FIRST: usize = 10;
const LAST: usize = 2;

/// Prints what there is to say of a policy.
pub(super) fn print(facts: &Facts<'_>, out: &mut impl Write) -> io::Result<()> {
    let name = facts.name.unwrap_or("defaults");
    writeln!(out, "{TITLE}{name}{TITLE:#}  {ASIDE}{}{ASIDE:#}\n", summary(facts.declared))?;
    waits(facts, out)?;
    held(facts, out)?;
    load(facts, out)?;
    for warning in &facts.warnings {
        let (key, message) = (warning.key, &warning.message);
        writeln!(out, "{WARNING}warning:{WARNING:#} {TITLE}{key}{TITLE:#}: {message}")?;
    }
    Ok(())
}

fn summary(declared: &Declared) -> String {
    let policy = declared.policy();
    let backoff = policy.backoff();
    let base = time(backoff.base);
    let curve = match backoff.curve {
        Curve::Fixed => format!("{base} each time"),
        Curve::Exponential { factor } => {
            format!("{base} × {} up to {}", number(factor), time(backoff.cap))
        }
        Curve::Polynomial { power } => {
            format!("{base} + retry^{power} s up to {}", time(backoff.cap))
        }
        _ => base,
    };
    let jitter = match backoff.jitter {
        Jitter::None => "no jitter",
        Jitter::Full => "full jitter",
        Jitter::Equal => "equal jitter",
        Jitter::Decorrelated => "decorrelated jitter",
        _ => "added jitter",
    };
    let (attempt, total) = (time(policy.attempt_timeout()), time(policy.total_timeout()));
    let attempts = match policy.attempts() {
        1 => "1 attempt".to_owned(),
        more => format!("{more} attempts"),
    };
    format!("{attempts} · {curve} · {jitter} · {attempt} an attempt · {total} in all")
}

fn waits(facts: &Facts<'_>, out: &mut impl Write) -> io::Result<()> {
    let Schedule { waits, left_out, cap } = &facts.schedule;
    if waits.is_empty() {
        return writeln!(out, "One attempt: there is nothing to wait for.\n");
    }
    writeln!(out, "{TITLE}Waits{TITLE:#} before each retry, when every attempt fails at once")?;
    let row = |wait: &Wait| {
        let Wait { retry, bound, least, spread, so_far } = wait;
        let times = [*bound, *least, spread.median, spread.p99, spread.most];
        let [bound, least, median, p99, most] = times.map(time);
        let so_far = [so_far.median, so_far.p99, so_far.most].map(time);
        let [sum_median, sum_p99, sum_most] = so_far;
        [retry.to_string(), bound, least, median, p99, most, sum_median, sum_p99, sum_most]
    };
    let mut rows: Vec<_> = waits.iter().map(row).collect();
    if rows.len() > FIRST + LAST {
        let gap = FIRST..rows.len() - LAST;
        rows.splice(gap, [std::array::from_fn(|_| "…".to_owned())]);
    }
    let header = ["retry", "bound", "min", "median", "p99", "max", "so far: median", "p99", "max"];
    writeln!(out, "{}", table(header, rows))?;
    if *left_out > 0 {
        writeln!(out, "and {left_out} more.")?;
    }
    let most = time(facts.declared.policy().backoff().cap);
    match cap {
        Cap::Binds { from } => writeln!(out, "The cap of {most} binds from retry {from} on.\n"),
        Cap::Beyond { from } => {
            writeln!(out, "The cap of {most} does not bind: it would from retry {from} on.\n")
        }
        Cap::Never => writeln!(out, "The cap of {most} never binds.\n"),
    }
}

fn held(facts: &Facts<'_>, out: &mut impl Write) -> io::Result<()> {
    let (policy, held) = (facts.declared.policy(), &facts.held);
    let (attempts, attempt) = (policy.attempts(), time(policy.attempt_timeout()));
    let waits = time(facts.schedule.longest());
    let sum = format!("{attempts} × {attempt} and {waits} of waits");
    write!(out, "{TITLE}A caller is held{TITLE:#} {} at the most: ", time(held.at_most))?;
    if held.at_most < held.without_total {
        let without = time(held.without_total);
        writeln!(out, "the total timeout. Without it, {without}: {sum}.\n")
    } else {
        writeln!(out, "{sum}.\n")
    }
}

fn load(facts: &Facts<'_>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{TITLE}Load{TITLE:#} on a dependency that fails, for each call at the top")?;
    let row = |load: &Load| {
        let budgeted = load.budgeted.map_or("no budget".to_owned(), times);
        [load.layers.to_string(), times(load.one), budgeted, times(load.unbounded)]
    };
    let header = ["layers", "one retries", "each, with this budget", "each, without"];
    writeln!(out, "{}", table(header, facts.load.iter().map(row).collect()))?;
    if facts.declared.has_budget() {
        let budget = facts.declared.policy().budget();
        let (ratio, floor) = (number(budget.ratio.as_f64()), number(budget.floor));
        let (earned, outage) = match budget.earn {
            Earn::PerCall => ("call", "the same goes on"),
            _ => ("success", "these alone remain"),
        };
        writeln!(
            out,
            "Each {earned} earns {ratio} retries, and each process gets {floor} a second besides. \
             While nothing succeeds, {outage}."
        )?;
    }
    writeln!(out)
}
