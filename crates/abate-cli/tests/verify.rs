//! `abate verify`, as a shell runs it: with the experiment that is soonest done, since others take minutes
//! without optimisation.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use self::shell::{Ended, abate, ended};

mod shell;

const SOON: &str = "E11";

fn verify(args: &[&str]) -> std::io::Result<Ended> {
    abate(Path::new("."), &[&["verify"], args].concat()).output().map(ended)
}

#[test]
fn an_experiment_is_told_with_what_was_expected_and_what_came() {
    let ended = verify(&[SOON]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{}", ended.out);
    assert!(ended.out.starts_with(SOON), "{}", ended.out);
    let figures = ended.out.lines().filter(|line| line.contains("expected")).count();
    assert!(figures > 0 && ended.out.lines().filter(|it| it.ends_with("holds")).count() > 0);
    let last = ended.out.lines().last().unwrap();
    assert!(last.contains(" figures hold, 0 missed, "), "{last}");
    assert!(!ended.out.contains('\u{1b}'));
    assert_eq!(verify(&["e11"]).unwrap().out, ended.out, "small letters will do");
}

#[test]
fn json_has_each_figure_with_its_verdict() {
    let ended = verify(&[SOON, "--json"]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    let experiments = json["experiments"].as_array().unwrap();
    assert_eq!(experiments.len(), 1);
    assert_eq!(experiments[0]["id"], SOON);
    let lines = experiments[0]["lines"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line["what"].is_string() && line["unit"].is_string(), "{line}");
        let verdict = line["verdict"].as_str().unwrap();
        assert!(["holds", "missed", "told"].contains(&verdict), "{line}");
    }
}

#[test]
fn an_experiment_that_there_is_not_is_told_the_nearest() {
    for (name, told) in [
        ("E77", "there is no experiment `E77`; did you mean E7?\n"),
        ("storms", "there is no experiment `storms`; there are E1, E2"),
        ("", "there is no experiment ``; there are E1, E2"),
    ] {
        let ended = verify(&[SOON, name]).unwrap();
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "nothing is run first");
        assert!(ended.err.starts_with(&format!("error: {told}")), "{}", ended.err);
    }
    assert_eq!(verify(&["--jsno"]).unwrap().code, Some(2));
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = verify(&["--help"]).unwrap();
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Examples:\n  abate verify\n"), "{}", help.out);
    assert!(help.out.contains("1  a figure was missed"), "{}", help.out);
}

/// As `abate verify E11 | head -n 1` does.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut command = abate(Path::new("."), &["verify", SOON]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
}
