use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Command;

use tower::BoxError;

use super::client::keep_requests;
use super::scenario::Scenario;
use super::subjects::caller;
use super::times::with_timers;

const FEW: u32 = 100;
const MANY: u32 = 1100;

/// The functions of the C library that Rust's allocator asks.
const ALLOCATING: [&str; 5] = ["malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign"];

/// What a call costs beyond the same call over the bare client; of the bare client, all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) instructions: i64,
    /// In a hundred calls, so that one in some calls shows.
    pub(super) allocations: i64,
}

/// The counts of these scenarios, told on stderr as they come; none without valgrind.
pub(super) fn counts(scenarios: &[Scenario]) -> Result<BTreeMap<Scenario, Counts>, BoxError> {
    let (mut bare, mut extra) = (BTreeMap::new(), BTreeMap::new());
    if !has_valgrind() {
        say("instructions and allocations: valgrind is missing (Debian: apt-get install valgrind)");
        return Ok(extra);
    }
    for scenario in scenarios {
        let base = match bare.get(&scenario.path) {
            Some(base) => *base,
            None => absolute(scenario.bare())?,
        };
        bare.insert(scenario.path, base);
        let is_bare = *scenario == scenario.bare();
        let counts = if is_bare { base } else { absolute(*scenario)?.beyond(base) };
        say(&format!("{scenario}: {}", counts.show()));
        extra.insert(*scenario, counts);
    }
    Ok(extra)
}

impl Counts {
    const fn beyond(self, bare: Self) -> Self {
        Self {
            instructions: self.instructions - bare.instructions,
            allocations: self.allocations - bare.allocations,
        }
    }

    pub(super) fn show(self) -> String {
        format!("{} instr, {} alloc", self.instructions, self.allocations_per_call())
    }

    pub(super) fn allocations_per_call(self) -> f64 {
        self.allocations as f64 / 100.0
    }
}

/// Of one call: what more calls take than few, so that nothing else is in it.
fn absolute(scenario: Scenario) -> Result<Counts, BoxError> {
    let (few, many) = (profile(scenario, FEW)?, profile(scenario, MANY)?);
    let per_call = |few: i64, many: i64, calls: i64| {
        let of = i64::from(MANY - FEW);
        ((many - few) * calls + of / 2) / of
    };
    Ok(Counts {
        instructions: per_call(few.instructions, many.instructions, 1),
        allocations: per_call(few.allocations, many.allocations, 100),
    })
}

/// Counted by callgrind and not by an allocator of ours, whose own instructions peers would pay.
fn profile(scenario: Scenario, calls: u32) -> Result<Counts, BoxError> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/stdout", "--compress-strings=no"])
        .arg(std::env::current_exe()?)
        .args(["--one", &scenario.to_string(), "--calls", &calls.to_string()])
        .output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    match parsed(&String::from_utf8_lossy(&output.stdout)) {
        Some(counts) if output.status.success() => Ok(counts),
        _ => Err(format!("{scenario} under valgrind: {told}").into()),
    }
}

/// Reads `totals: <instructions>`, and for each caller `cfn=<called>` and `calls=<times> …`.
fn parsed(profile: &str) -> Option<Counts> {
    let (mut instructions, mut allocations, mut called) = (None, 0, "");
    for line in profile.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            called = name;
        } else if let Some(times) = line.strip_prefix("calls=") {
            if ALLOCATING.contains(&called) {
                allocations += times.split_whitespace().next()?.parse::<i64>().ok()?;
            }
        } else if let Some(total) = line.strip_prefix("totals: ") {
            instructions = total.trim().parse().ok();
        }
    }
    Some(Counts { instructions: instructions?, allocations })
}

/// Makes calls of one scenario and nothing else: what runs under valgrind.
///
/// # Errors
///
/// When the scenario cannot be set up.
pub fn one(scenario: Scenario, calls: u32) -> Result<(), BoxError> {
    keep_requests();
    with_timers(|| {
        caller(scenario)?.call(calls);
        Ok(())
    })
}

fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|it| it.status.success())
}

/// Progress, which is nobody's error when it cannot be shown.
pub(super) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn a_profile_tells_its_instructions_and_who_allocated() {
        let profile = "fn=a\ncfn=malloc\ncalls=2 0\n1 9\ncfn=free\ncalls=2 0\n1 9\n\
                       fn=b\ncfn=realloc\ncalls=1 0\n1 9\ntotals: 42\n";
        let counts = parsed(profile).unwrap();
        assert_eq!((counts.instructions, counts.allocations), (42, 3));
        assert!(parsed("fn=a\n").is_none());
    }
}
