use super::super::comparison::Comparison;
use super::super::samples;
use super::terminal;
use crate::record::{Bin, Run, Trouble};
use std::time::Duration;
use textwrap::core::display_width;

/// Eight seconds: retries grow from the third, and trouble lasts for two.
fn small() -> Comparison {
    let bin = |(retries, succeeded): (u32, u32)| Bin {
        calls: 4,
        first: 4,
        retries,
        succeeded,
        ..Bin::default()
    };
    let bins = [(0, 4), (0, 4), (8, 0), (16, 0), (16, 0), (0, 2), (0, 4), (0, 4)].map(bin);
    let second = Duration::from_secs(1);
    let trouble = Trouble { from: 2 * second, to: 4 * second, what: "down".to_owned() };
    let run = Run {
        name: "small".to_owned(),
        step: second,
        bins: bins.to_vec(),
        faults: vec![trouble],
        calls: 32,
        succeeded: 18,
        sent: 72,
        ..Run::default()
    };
    Comparison { title: "storm".to_owned(), runs: vec![run], ..Comparison::default() }
}

#[test]
fn retries_are_hatched_where_there_are_no_colours() {
    let expected = "\
storm

small
█ first tries  ░ retries
    20 ┤      ░░░░
       │      ░░░░
       │    ░░░░░░
       │    ░░░░░░
     0 ┤████████████████
█ calls that succeed: 5…
 100 % ┤████▁▁▁▁▁▁▄▄████
       └────━━━━────────
        0 s down     8 s

small: 56.2 % of calls
succeed, 2.25 attempts
per call.
";
    assert_eq!(terminal(&small(), 24, false), expected);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut wide = samples::comparison(300);
    wide.runs[0].name = "再試行".repeat(40);
    wide.runs[1].name = "\u{1b}[31mred\u{7}\nline".to_owned();
    wide.runs[2].faults[0].what = "slow ".repeat(50);
    for comparison in [samples::comparison(300), samples::comparison(1), wide, small()] {
        for width in 2..=200 {
            for colours in [false, true] {
                let text = terminal(&comparison, width, colours);
                for line in text.lines() {
                    let line = without_styles(line);
                    assert!(display_width(&line) <= width, "{width}: {line}");
                    assert!(!line.contains(char::is_control), "{line:?}");
                }
            }
        }
    }
}

#[test]
fn a_trouble_with_a_long_name_leaves_room_for_the_end() {
    let mut comparison = samples::comparison(300);
    comparison.runs[0].faults[0].what = "slow ".repeat(50);
    assert_eq!(terminal(&comparison, 80, false).matches(" 300 s\n").count(), 3);
}

#[test]
fn without_colours_there_are_no_escapes_and_with_them_the_same_lines() {
    let comparison = samples::comparison(300);
    let (plain, coloured) = (terminal(&comparison, 80, false), terminal(&comparison, 80, true));
    assert!(!plain.contains('\u{1b}'));
    assert!(coloured.contains("\u{1b}[33m"));
    assert_eq!(plain.lines().count(), coloured.lines().count());
}

#[test]
fn a_run_without_bins_has_no_chart() {
    let nothing = Comparison { runs: vec![Run::default()], ..Comparison::default() };
    assert!(terminal(&nothing, 80, false).contains("no chart"));
    assert!(terminal(&small(), 15, false).contains("no chart"), "too narrow");
    assert_eq!(terminal(&Comparison::default(), 80, false), "\nnothing was run.\n");
    assert!(!terminal(&Comparison::default(), 0, true).is_empty());
}

fn without_styles(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default();
    let rest = pieces.map(|piece| piece.split_once('m').map_or(piece, |(_, text)| text));
    [first].into_iter().chain(rest).collect()
}
