use std::time::Duration;

use super::{Declared, Policies};
use crate::backoff::{Backoff, Curve, Jitter};
use crate::budget::Earn;
use crate::classify::{Statuses, Transient};
use crate::config::source::read;
use crate::policy::Policy;
use crate::rng::Seed;

const MILLIS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Each key that there is, with a value that is not its default.
const WHOLE: &str = r#"
[defaults]
attempt_timeout = "3s"

[dependency."api.example.com"]
attempts = 5
base = "200ms"
cap = "20s"
curve = "exponential"
factor = 3
jitter = "equal"
total_timeout = "1m"
retry_on = [429, 503, 507]
never_retry = [500]
non_idempotent = "once"
concurrency = 200
concurrency_wait = "250ms"

[dependency."api.example.com".hints]
reset = "x-ratelimit-reset"
reset_unit = "epoch_seconds"
ratelimit = true
grpc_pushback = true
should_retry = true

[dependency."api.example.com".budget]
ratio = "10%"
floor = 1
earn = "per_call"
cost = { server = 2, ambiguous = 0.5 }

[dependency."api.example.com".breaker]
failure_rate = 0.6
minimum_calls = 20
window = "10s"
open_for = "4s"
open_at_most = "60s"
probes = 5
slow_calls = { after = "2s", rate = "80%" }

[dependency.jobs]
curve = "polynomial"
power = 3
jitter = "added"
jitter_per_retry = "5s"
budget = false
breaker = false

[dependency.legacy]
jitter = "added_in_steps"
jitter_steps = 7
"#;

fn parse(text: &str) -> Result<Policies, String> {
    Policies::parse("p.toml", text.as_bytes()).map_err(|problems| problems.to_string())
}

/// What is wrong with these lines of a `[dependency.d]`.
fn problems(lines: &str) -> String {
    parse(&format!("[dependency.d]\n{lines}")).unwrap_err()
}

#[test]
fn every_key_arrives_where_it_belongs() {
    use crate::retry_after::{HintSources, ResetUnit};
    let policies = parse(WHOLE).unwrap();
    let expected = Policy::builder()
        .with_attempts(5)
        .with_base(200 * MILLIS)
        .with_cap(20 * SECOND)
        .with_curve(Curve::Exponential { factor: 3.0 })
        .with_jitter(Jitter::Equal)
        .with_total_timeout(60 * SECOND)
        .with_attempt_timeout(3 * SECOND)
        .with_retry_on(507)
        .with_non_idempotent(crate::safety::NonIdempotent::Once)
        .with_concurrency(200)
        .with_concurrency_wait(250 * MILLIS)
        .with_hints(
            HintSources::new()
                .with_reset(
                    http::HeaderName::from_static("x-ratelimit-reset"),
                    ResetUnit::EpochSeconds,
                )
                .with_ratelimit()
                .with_grpc_pushback()
                .with_should_retry(),
        )
        .with_budget_ratio(0.1)
        .with_budget_floor(1.0)
        .with_budget_earn(Earn::PerCall)
        .with_budget_cost(Transient::Server, 2.0)
        .with_budget_cost(Transient::Ambiguous, 0.5)
        .with_breaker_failure_rate(0.6)
        .with_breaker_minimum_calls(20)
        .with_breaker_window(10 * SECOND)
        .with_breaker_open_for(4 * SECOND, 60 * SECOND)
        .with_breaker_probes(5)
        .with_breaker_slow_calls(2 * SECOND, 0.8);
    // `retry_on` is the whole list.
    let expected = Statuses::TRANSIENT
        .iter()
        .filter(|status| ![429, 503].contains(status))
        .fold(expected, crate::policy::PolicyBuilder::with_never_retry)
        .build();
    let api = policies.dependency("api.example.com").unwrap();
    assert_eq!(api.policy(), &expected.unwrap());
    assert!(api.has_budget() && api.has_breaker());

    let jobs = policies.dependency("jobs").unwrap();
    let waits = Backoff {
        curve: Curve::Polynomial { power: 3 },
        jitter: Jitter::Added { per_retry: 5 * SECOND },
        ..*Policy::default().backoff()
    };
    assert_eq!(jobs.policy().backoff(), &waits);
    assert!(!jobs.has_budget() && !jobs.has_breaker());
    let legacy = policies.dependency("legacy").unwrap();
    assert_eq!(legacy.policy().backoff().jitter, Jitter::AddedInSteps { steps: 7 });
}

#[test]
fn what_is_not_written_is_the_default() {
    assert_eq!(parse("").unwrap(), Policies::default());
    let policies = parse("[dependency.d]").unwrap();
    assert_eq!(policies.dependency("d"), Some(&Declared::default()));
    assert_eq!(policies.dependency("e"), None);
    assert_eq!(policies.defaults().policy(), &Policy::default());
}

#[test]
fn a_dependency_starts_from_the_defaults_of_its_file() {
    let text = "[defaults]\ncurve = 'polynomial'\nbreaker = false\nbudget = { ratio = 0.5 }\n\
        [dependency.d]\npower = 2\nbreaker = { probes = 9 }\nbudget.floor = 2\n\
        [dependency.e]\nbreaker = true\nbudget = false\n";
    let policies = parse(text).unwrap();
    let defaults = policies.defaults();
    assert_eq!(defaults.policy().backoff().curve, Curve::Polynomial { power: 4 });
    assert!(!defaults.has_breaker());
    let own = policies.dependency("d").unwrap();
    assert_eq!(own.policy().backoff().curve, Curve::Polynomial { power: 2 });
    assert_eq!(own.policy().budget().ratio.as_f64(), 0.5);
    assert_eq!(own.policy().budget().floor, 2.0);
    assert_eq!(own.policy().breaker().probes, 9);
    assert!(own.has_breaker());
    for (key, written) in [
        ("curve", true),
        ("power", true),
        ("budget.ratio", true),
        ("cap", false),
        ("budget", false),
    ] {
        assert_eq!(own.is_written(key), written, "{key}");
    }
    let other = policies.dependency("e").unwrap();
    assert!(other.has_breaker() && !other.has_budget());
}

#[test]
fn a_policy_in_another_file_is_read_by_the_same_keys() {
    let text = "[policy.ours]\nattempts = 4\n";
    let policy = read("storm.toml", text.as_bytes(), |mut root| {
        let mut table = root.take("policy").table()?;
        let mut named = table.take_rest();
        named.pop()?.1.table().map(Declared::read)
    });
    let expected = Policy::builder().with_attempts(4).build().unwrap();
    assert_eq!(policy.unwrap().unwrap().policy(), &expected);
}

// CF-02
#[test]
fn a_key_that_is_unknown_misplaced_or_of_another_shape_is_an_error() {
    for (text, expected) in [
        (
            "max_attempt = 3",
            "p.toml:1:1: max_attempt: unknown key; known here: `defaults`, `dependency`",
        ),
        ("[default]", "p.toml:1:2: default: unknown key; did you mean `defaults`?"),
        ("[dependency]\nd = 3", "p.toml:2:5: dependency.d: expected a table, got 3"),
        (
            "[defaults]\nbase = { ms = 250 }",
            "p.toml:2:8: defaults.base: expected a duration such as",
        ),
        ("[defaults]\nfailure_rate = 0.5", "p.toml:2:1: defaults.failure_rate: unknown key"),
        ("[defaults.retries]\n", "p.toml:1:11: defaults.retries: unknown key"),
    ] {
        let told = parse(text).unwrap_err();
        assert!(told.starts_with(expected), "{told}");
    }
}

// CF-04
#[test]
fn a_value_that_cannot_be_is_told_at_its_line() {
    for (lines, expected) in [
        ("attempts = 0", "2:12: dependency.d.attempts: must be at least 1"),
        ("attempts = -1", "2:12: dependency.d.attempts: expected a whole number from 0"),
        ("base = '20s'", "2:8: dependency.d.base: 20s is above the cap of 10s"),
        ("cap = '50ms'", "2:7: dependency.d.cap: `base` cannot work with this: 100ms is above"),
        ("factor = 0.5", "2:10: dependency.d.factor: must be a number of at least 1"),
        ("factor = nan", "2:10: dependency.d.factor: expected a number, got nan"),
        ("factor = inf", "2:10: dependency.d.factor: must be a number of at least 1"),
        (
            "power = 0\ncurve = 'polynomial'",
            "2:9: dependency.d.power: expected a whole number from 1",
        ),
        ("power = 2", "2:9: dependency.d.power: only `curve = \"polynomial\"` has it"),
        ("jitter_steps = 2", "2:16: dependency.d.jitter_steps: only `jitter = \"added_in_steps\"`"),
        ("jitter = 'fully'", "2:10: dependency.d.jitter: expected one of `none`, `full`"),
        ("base = '0s'\njitter = 'decorrelated'", "2:8: dependency.d.base: decorrelated jitter"),
        ("retry_on = [404]", "2:12: dependency.d.retry_on: 404 would be answered the same way"),
        ("retry_on = [200]", "2:12: dependency.d.retry_on: 200 is not among the failures"),
        ("retry_on = [503, 99]", "2:18: dependency.d.retry_on[1]: expected a whole number"),
        ("retry_on = 503", "2:12: dependency.d.retry_on: expected an array, got 503"),
        ("retry_on = [503]\nnever_retry = [503]", "3:15: dependency.d.never_retry: 503 stands in"),
        ("total_timeout = '5s'", "2:17: dependency.d.total_timeout: `attempt_timeout` cannot work"),
        ("attempt_timeout = '0s'", "2:19: dependency.d.attempt_timeout: must be longer"),
        ("attempt_timeout = '40s'", "2:19: dependency.d.attempt_timeout: 40s is never reached"),
        ("budget = 3", "2:10: dependency.d.budget: expected a table, `true` or `false`, got 3"),
        ("budget.ratio = -0.1", "2:16: dependency.d.budget.ratio: expected a ratio from 0 to 1"),
        ("budget.ratio = 1e9", "2:16: dependency.d.budget.ratio: expected a ratio from 0 to 1"),
        ("budget.floor = inf", "2:16: dependency.d.budget.floor: must be 0 to 1,000,000"),
        (
            "budget.cost = -1",
            "2:15: dependency.d.budget.cost: expected a number from 0 to 1000, got -1",
        ),
        ("budget.cost = 'x'", "2:15: dependency.d.budget.cost: expected a number"),
        (
            "budget.cost.serve = 1",
            "2:13: dependency.d.budget.cost.serve: unknown key; did you mean `server`?",
        ),
        ("breaker.failure_rate = 0", "2:24: dependency.d.breaker.failure_rate: must be above 0"),
        ("breaker.failure_rate = 101", "2:24: dependency.d.breaker.failure_rate: expected a ratio"),
        ("breaker.minimum_calls = 0", "2:25: dependency.d.breaker.minimum_calls: must be"),
        ("breaker.window = '1s'", "2:18: dependency.d.breaker.window: 1s is too short"),
        ("breaker.open_for = '60s'", "2:20: dependency.d.breaker.open_for: 60s is above"),
        (
            "breaker.open_at_most = '1s'",
            "2:24: dependency.d.breaker.open_at_most: `breaker.open_for`",
        ),
        ("breaker.probes = 0", "2:18: dependency.d.breaker.probes: must be 1 to 100"),
        (
            "breaker.slow_calls = { rate = 1 }",
            "2:22: dependency.d.breaker.slow_calls.after: this key is required",
        ),
        ("concurrency = 0", "2:15: dependency.d.concurrency: must be 1 to"),
        (
            "hints.reset = 'a b'\nhints.reset_unit = 'seconds'",
            "2:15: dependency.d.hints.reset: this is no name",
        ),
        ("hints.reset_unit = 'seconds'", "2:1: dependency.d.hints.reset: this key is required"),
        ("hints.reset = 'x-reset'", "2:1: dependency.d.hints.reset_unit: this key is required"),
    ] {
        let told = problems(lines);
        assert!(told.starts_with(&format!("p.toml:{expected}")), "{lines}: {told}");
        assert_eq!(told.lines().count(), 1, "{lines}: {told}");
    }
}

#[test]
fn all_problems_are_told_at_once_and_each_once() {
    let text = "[defaults]\nattempts = 0\nbase = 5\n[dependency.a]\ncapp = '1s'\n\
        [dependency.b]\nbreaker.probes = 0\n";
    let told = parse(text).unwrap_err();
    let places: Vec<_> = told.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["p.toml:2:12", "p.toml:3:8", "p.toml:5:1", "p.toml:7:18"], "{told}");
}

/// The lines of [`WHOLE`] that set a key, with their numbers (from 1).
fn settings() -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    let setting = |(n, line): (usize, &'static str)| {
        let (key, value) = line.split_once(" = ")?;
        Some((n + 1, key, value))
    };
    WHOLE.lines().enumerate().filter_map(setting)
}

fn with_line(number: usize, new: &str) -> String {
    let line = |(n, line)| if n + 1 == number { new } else { line };
    WHOLE.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_mutation_of_a_good_file_that_makes_it_wrong_is_told_with_line_and_key() {
    let mut told = 0;
    for (line, key, value) in settings() {
        let misspelt = (0..key.len()).map(|at| [&key[..at], "_", &key[at..]].concat());
        let misspelt = misspelt.map(|key| (format!("{key} = {value}"), key));
        let wrong = ["1979-05-27", "[{}]", "'\u{0}'", "-7", "nan", "99999999999999999999"];
        let wrong =
            wrong.map(|value| (format!("{key} = {}", value.replace('\0', "?")), key.to_owned()));
        for (new, key) in misspelt.chain(wrong) {
            let problems = Policies::parse("p.toml", with_line(line, &new).as_bytes()).unwrap_err();
            let here =
                |it: &&crate::config::source::Problem| it.line() == line && it.key().contains(&key);
            let here = problems.as_slice().iter().find(here);
            assert!(here.is_some(), "{new}: {problems}");
            told += 1;
        }
    }
    assert!(told >= 300, "{told}");
}

#[test]
fn no_bytes_make_it_panic() {
    let mut rng = Seed::new(8).stream(0);
    let mut wrong = 0;
    for _ in 0..3_000 {
        let mut bytes = WHOLE.as_bytes().to_vec();
        for _ in 0..=rng.below(3) {
            let at = usize::try_from(rng.below(bytes.len() as u64)).unwrap();
            let byte = u8::try_from(rng.below(256)).unwrap();
            match rng.below(4) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let lines = bytes.split(|byte| *byte == b'\n').count();
        if let Err(problems) = Policies::parse("p.toml", &bytes) {
            wrong += 1;
            for problem in problems.as_slice() {
                assert!((1..=lines).contains(&problem.line()) && problem.column() > 0, "{problem}");
                assert!(!problem.message().is_empty());
                let is_syntax = problem.message().starts_with("this is no");
                assert!(is_syntax || !problem.key().is_empty(), "{problem}");
            }
        }
    }
    assert!((500..3_000).contains(&wrong), "{wrong}");
}
