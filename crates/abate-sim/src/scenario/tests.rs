use super::{Scenario, shipped, shipped_names};
use crate::model::{Arrivals, Conduct};

const GOOD: &str = r#"
title = "An outage"
length = "1m"

[[server]]
name = "orders"
workers = 30
service = "100ms"

[[clients]]
name = "shop"
count = 5
calls = { poisson = [["0s", 40], ["25s", 80]] }

[[trouble]]
what = "slow"
times = 18
from = "10s"
for = "10s"

[[policy]]
name = "default"
"#;

fn problems(text: &str) -> String {
    match Scenario::parse("storm.toml", text.as_bytes()) {
        Ok(_) => "none".to_owned(),
        Err(problems) => problems.to_string(),
    }
}

#[test]
fn each_scenario_that_ships_can_be_run() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), shipped_names().count());
    for name in shipped_names() {
        let text = shipped(name).unwrap();
        let scenario = Scenario::parse(name, text.as_bytes());
        let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(!scenario.about.is_empty() && scenario.candidates.len() >= 2, "{name}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_what_would_be_right() {
    let cases = [
        ("\"1m\"", "60", "storm.toml:3:10: length: the unit is missing"),
        (
            "workers",
            "worker",
            "storm.toml:7:1: server[0].worker: unknown key; did you mean `workers`?",
        ),
        (
            "workers = 30",
            "workers = 0",
            "storm.toml:7:11: server[0].workers: expected a whole number from 1",
        ),
        ("service = \"100ms\"\n", "", "server[0].service: this key is required, but missing"),
        ("poisson", "poison", "did you mean `poisson`?"),
        ("80]", "80, 1]", "expected a moment and the calls per second then"),
        ("\"slow\"", "\"slov\"", "did you mean `slow`?"),
        ("times = 18\n", "", "trouble[0].times: this key is required, but missing"),
        ("for = \"10s\"", "for = \"0s\"", "trouble[0].for: must be longer than nothing"),
        ("\"1m\"", "\"1000d\"", "must be longer than nothing, and 100 days at the most"),
        (
            "calls = { poisson = [[\"0s\", 40], [\"25s\", 80]] }",
            "calls = { serial = \"0s\" }",
            "time would stand still",
        ),
        ("count = 5", "onward = \"x\"", "no clients below these"),
        ("count = 5", "server = \"order\"", "did you mean `orders`?"),
        (
            "name = \"default\"",
            "name = \"default\"\nattempts = 0",
            "policy[0].attempts: must be at least 1",
        ),
    ];
    assert_eq!(problems(GOOD), "none");
    for (old, new, expected) in cases {
        let told = problems(&GOOD.replacen(old, new, 1));
        assert!(told.contains(expected), "{old} → {new}: {told}");
    }
}

#[test]
fn no_cut_or_doubled_line_makes_a_reader_panic() {
    let lines: Vec<_> = GOOD.lines().collect();
    for n in 0..lines.len() {
        let without = [&lines[..n], &lines[n + 1..]].concat().join("\n");
        let twice = [&lines[..=n], &lines[n..]].concat().join("\n");
        for text in [without, twice] {
            let told = problems(&text);
            assert!(told == "none" || told.contains("storm.toml:"), "{told}");
        }
    }
    for end in 0..GOOD.len() {
        problems(&GOOD[..end]);
    }
}

#[test]
fn a_scaled_scenario_has_more_calls_and_longer_trouble() {
    let scenario = Scenario::parse("storm.toml", GOOD.as_bytes()).unwrap();
    let conduct: &Conduct = &scenario.candidates[0].conduct;
    let (plain, scaled) = (scenario.model(conduct), scenario.scaled(2.0, 3.0).model(conduct));
    let peak = |arrivals: &Arrivals| match arrivals {
        Arrivals::Poisson(rate) => rate.peak(),
        other => panic!("{other:?}"),
    };
    assert_eq!(peak(&scaled.groups[0].arrivals), 2.0 * peak(&plain.groups[0].arrivals));
    let lasts = |model: &crate::model::Model| model.troubles[0].to - model.troubles[0].from;
    assert_eq!(lasts(&scaled), 3 * lasts(&plain));
    assert_eq!(scaled.length - plain.length, 2 * lasts(&plain));
}
