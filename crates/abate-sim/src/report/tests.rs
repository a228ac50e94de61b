use super::*;
use crate::record::{Attempts, Bin, Run, Trouble};
use std::time::Duration;

const MARKUP: &str = "<script>alert('1' & \"2\")</script>";

/// What nobody should send, and somebody will.
fn odd_comparisons() -> Vec<Comparison> {
    let most = Bin {
        calls: u32::MAX,
        first: u32::MAX,
        retries: u32::MAX,
        succeeded: u32::MAX,
        queue: u32::MAX,
        refused_by_limit: u32::MAX,
        capacity: Some(f64::MAX),
        p50: Some(Duration::MAX),
        p99: Some(Duration::MAX),
        ..Bin::default()
    };
    let least = Bin { capacity: Some(f64::NAN), p50: Some(Duration::ZERO), ..Bin::default() };
    let forever = Trouble { from: Duration::ZERO, to: Duration::MAX, what: String::new() };
    let second = Duration::from_secs(1);
    let run = |step, bins: &[Bin]| Run {
        step,
        bins: bins.to_vec(),
        faults: vec![forever.clone(); 3],
        attempts: vec![Attempts::default(), Attempts { sent: 1, succeeded: u64::MAX }],
        times_to_success: vec![Duration::ZERO, Duration::MAX],
        budget_ratio: Some(f64::INFINITY),
        sent: u64::MAX,
        ..Run::default()
    };
    let runs = vec![
        Run::default(),
        run(second, &[]),
        run(second, &[most]),
        run(second, &[least]),
        run(second, &[most, least, most]),
        run(Duration::ZERO, &[most, least]),
        run(Duration::MAX, &[most, least, least]),
        run(Duration::from_nanos(1), &[most; 40]),
    ];
    let grid = Grid { recovery: vec![vec![], vec![None, Some(Duration::MAX)]], ..Grid::default() };
    let map = Map {
        loads: vec![f64::NAN, 0.0, 1e300],
        outages: vec![Duration::MAX; 3],
        policies: vec![Grid::default(), grid],
    };
    let alone =
        runs.iter().map(|run| Comparison { runs: vec![run.clone()], ..Comparison::default() });
    let mut all: Vec<_> = alone.collect();
    all.push(Comparison::default());
    all.push(Comparison { runs, map: Some(map), ..Comparison::default() });
    all
}

#[test]
fn odd_runs_make_a_report_too() {
    for comparison in odd_comparisons() {
        let page = html(&comparison);
        roxmltree::Document::parse(body(&page)).unwrap();
        for odd in ["NaN", "inf"] {
            assert!(!body(&page).contains(odd), "{odd} in {page}");
        }
        serde_json::from_str::<serde_json::Value>(&json(&comparison)).unwrap();
        assert!(!verdict(&comparison).is_empty());
    }
}

#[test]
fn a_page_is_well_formed_and_each_plot_says_what_it_shows() {
    let page = html(&samples::comparison(300));
    let document = roxmltree::Document::parse(body(&page)).unwrap();
    let plots = document.descendants().filter(|node| node.attribute("role") == Some("img"));
    let mut seen = 0;
    for plot in plots {
        for name in ["title", "desc"] {
            let text = plot.children().find(|node| node.has_tag_name(name));
            assert!(text.is_some_and(|node| node.text().is_some_and(|text| text.len() > 5)));
        }
        seen += 1;
    }
    assert_eq!(seen, 3 * 7 + 1, "seven of each policy, and one of all");
    let headings = document.descendants().filter(|node| node.has_tag_name("h2")).count();
    assert_eq!(headings, 9);
}

#[test]
fn every_policy_is_named_above_its_column_and_its_plots() {
    let comparison = samples::comparison(300);
    let page = html(&comparison);
    let document = roxmltree::Document::parse(body(&page)).unwrap();
    for run in &comparison.runs {
        let named = |tag| {
            let tags = document.descendants().filter(|node| node.has_tag_name(tag));
            tags.flat_map(|node| node.descendants())
                .filter(|node| node.text() == Some(&run.name))
                .count()
        };
        assert!(named("th") > 0 && named("figcaption") >= 8, "{}", run.name);
        assert!(terminal(&comparison, 80, false).contains(&run.name));
        assert!(json(&comparison).contains(&run.name));
    }
}

#[test]
fn strips_tell_counts_per_second_and_states_as_they_are() {
    let mut comparison = samples::comparison(300);
    for run in &mut comparison.runs {
        run.step = Duration::from_millis(500);
    }
    let page = html(&comparison);
    for told in ["up to 1,840/s", "up to 280/s", "up to 20<"] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn markup_in_names_stays_text() {
    let mut comparison = samples::comparison(200);
    comparison.title = MARKUP.to_owned();
    comparison.scenario = MARKUP.to_owned();
    for run in &mut comparison.runs {
        run.name = MARKUP.to_owned();
        run.faults[0].what = MARKUP.to_owned();
    }
    comparison.map.as_mut().unwrap().policies[0].name = MARKUP.to_owned();
    let page = html(&comparison);
    assert!(!page.contains("<script"));
    let document = roxmltree::Document::parse(body(&page)).unwrap();
    assert!(document.descendants().filter(|node| node.text() == Some(MARKUP)).count() > 30);
}

#[test]
fn a_page_needs_nothing_else() {
    let page = html(&samples::comparison(300));
    for outside in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_page_stays_small_however_many_bins_there_are_and_however_restless() {
    let size = |bins| {
        let mut comparison = samples::comparison(bins);
        comparison.runs.iter_mut().for_each(samples::shake);
        html(&comparison).len()
    };
    let sizes = [600, 20_000].map(size);
    assert!(sizes[0] > 100_000, "restless runs have many strokes: {sizes:?}");
    assert!(sizes.into_iter().all(|size| size < 600_000), "{sizes:?}");
}

#[test]
fn rows_of_csv_have_as_many_cells_as_the_header() {
    let run = samples::budgeted(130);
    let csv = csv(&run);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let rows: Vec<_> = lines.collect();
    assert_eq!(rows.len(), run.bins.len());
    for row in &rows {
        assert_eq!(row.len(), header.len());
    }
    let cell = |row: usize, name: &str| rows[row][header.iter().position(|n| *n == name).unwrap()];
    assert_eq!(cell(61, "time_s"), "61.000");
    assert_eq!(cell(61, "refused_by_breaker"), "920");
    assert_eq!(cell(61, "p99_s"), "9.7");
    assert_eq!(csv.lines().next(), super::csv(&Run::default()).lines().next());
}

#[test]
fn what_is_not_known_is_empty_in_csv_and_null_in_json() {
    let run = Run { step: Duration::from_secs(1), bins: vec![Bin::default()], ..Run::default() };
    assert_eq!(csv(&run).lines().nth(1), Some("0.000,0,0,0,0,0,0,0,0,0,0,0,0,0,0,,,"));
    let comparison = Comparison { runs: vec![run], ..Comparison::default() };
    let totals: serde_json::Value = serde_json::from_str(&json(&comparison)).unwrap();
    assert!(totals["policies"][0]["worst_p99_s"].is_null());
    assert!(totals["policies"][0]["recovery_s"].is_null());
}

#[test]
fn json_has_the_figures_of_the_table() {
    let totals: serde_json::Value = serde_json::from_str(&json(&samples::comparison(300))).unwrap();
    let [_, storm, default] = totals["policies"].as_array().unwrap().as_slice() else {
        panic!("three policies");
    };
    assert_eq!((&storm["recovery"], &default["recovery"]), (&"never".into(), &"recovered".into()));
    assert_eq!(default["recovery_s"], 2.0);
    assert_eq!(default["capacity_per_s"], 1_200.0);
    assert_eq!(default["trace"], "5ca1ab1e0ddba115");
    assert_eq!(storm["endings"][0]["why"], "timed out");
}

#[test]
fn the_verdict_is_one_sentence() {
    assert_eq!(
        verdict(&samples::comparison(360)),
        "one try is back after 4 s, 1.00 attempts per call; retry at once never recovers (240 s after \
         the trouble 2.9 % of calls succeed); default is back after 2 s, 0.86 attempts per call"
    );
    assert_eq!(verdict(&Comparison::default()), "nothing was run");
    let idle = Run { name: "idle".to_owned(), ..Run::default() };
    let short = Comparison { runs: vec![samples::storm(125), idle], ..Comparison::default() };
    assert_eq!(
        verdict(&short),
        "retry at once: 49.5 % of calls succeed, 2.82 attempts per call; idle made no calls",
        "five seconds after the trouble cannot tell whether it recovers"
    );
    let mut untouched = samples::budgeted(200);
    untouched.bins.iter_mut().for_each(|bin| bin.succeeded = bin.calls);
    assert_eq!(
        verdict(&Comparison { runs: vec![untouched], ..Comparison::default() }),
        "default is back as soon as the trouble ends, 0.75 attempts per call"
    );
    let jobs = Bin { calls: 100, failed: 20, ..Bin::default() };
    let through = Bin { succeeded: 8, ..Bin::default() };
    let herd = Run {
        name: "herd".to_owned(),
        step: Duration::from_secs(1),
        bins: [vec![jobs], vec![through; 10], vec![Bin::default(); 30]].concat(),
        faults: vec![Trouble {
            from: Duration::ZERO,
            to: Duration::from_secs(5),
            what: String::new(),
        }],
        calls: 100,
        succeeded: 80,
        failed: 20,
        sent: 250,
        ..Run::default()
    };
    assert_eq!(
        verdict(&Comparison { runs: vec![herd], ..Comparison::default() }),
        "herd: 80 % of calls succeed, 2.50 attempts per call, the last is through at 11 s"
    );
}

/// The part of a page that is XML as well.
fn body(page: &str) -> &str {
    let from = page.find("<body>").unwrap_or_default();
    let to = page.find("</body>").map_or(page.len(), |at| at + "</body>".len());
    &page[from..to]
}
