use std::time::Duration;

use super::{Problem, Section, Table, Value, read};

/// What is wrong with `text` when `reader` reads it, a line each, without the name of the file.
fn problems(text: &str, reader: impl FnOnce(Table<'_>)) -> Vec<String> {
    let told = |problem: &Problem| problem.to_string().replacen("f.toml:", "", 1);
    read("f.toml", text.as_bytes(), reader)
        .err()
        .map_or_else(Vec::new, |problems| problems.as_slice().iter().map(told).collect())
}

/// What is wrong with `a = {value}` when `reader` reads it.
fn problem(value: &str, reader: impl FnOnce(Value<'_>)) -> String {
    let found = problems(&format!("a = {value}"), |mut root| reader(root.take("a")));
    assert_eq!(found.len(), 1, "{value}: {found:?}");
    found.concat()
}

/// The value of `a = {value}`.
fn value<T>(value: &str, reader: impl FnOnce(Value<'_>) -> Option<T>) -> Option<T> {
    let text = format!("a = {value}");
    read("f.toml", text.as_bytes(), |mut root| reader(root.take("a"))).unwrap()
}

#[test]
fn values_are_read_as_they_are_written() {
    let millis = |n| Some(Duration::from_millis(n));
    for (text, expected) in
        [("'200ms'", 200), ("'1.5s'", 1_500), ("'2m'", 120_000), ("'1m 30s'", 90_000), ("'0s'", 0)]
    {
        assert_eq!(value(text, |it| it.duration()), millis(expected), "{text}");
    }
    for (text, percent) in [("0.2", 20), ("1", 100), ("0", 0), ("'20%'", 20), ("'20 %'", 20)] {
        let ratio = value(text, |it| it.ratio());
        assert_eq!(ratio, crate::ratio::Ratio::from_percent(percent), "{text}");
    }
    for (text, expected) in [("3", 3), ("0x10", 16), ("1_000", 1_000), ("+7", 7)] {
        assert_eq!(value(text, |it| it.integer(0..=u32::MAX)), Some(expected), "{text}");
    }
    assert_eq!(value("18446744073709551615", |it| it.integer(0..=u64::MAX)), Some(u64::MAX));
    assert_eq!(value("2.5", |it| it.number(0.0..=10.0)), Some(2.5));
    assert_eq!(value("2", |it| it.number(0.0..=10.0)), Some(2.0));
    assert_eq!(value("true", |it| it.flag()), Some(true));
    assert_eq!(value("'word'", |it| it.text().map(str::to_owned)), Some("word".to_owned()));
    assert_eq!(value("'b'", |it| it.word(&[("a", 1), ("b", 2)])), Some(2));
    let sum = |it: Value<'_>| it.items().iter().map(|it| it.integer(0..=9)).sum::<Option<u32>>();
    assert_eq!(value("[1, 2, 3]", sum), Some(6));
    let off = |it: Value<'_>| it.section().map(|it| matches!(it, Section::Off));
    assert_eq!(value("false", off), Some(true));
    assert_eq!(value("true", off), Some(false));
    assert_eq!(value("{}", off), Some(false));
}

#[test]
fn nothing_written_is_nothing_wrong_unless_it_is_required() {
    let found = problems("[t]", |mut root| {
        let mut table = root.take("t").table().unwrap();
        let absent = table.take("a");
        assert!(!absent.is_present());
        assert_eq!(absent.duration(), None);
        assert_eq!(absent.word(&[("b", 1)]), None);
        assert!(absent.items().is_empty() && absent.table().is_none());
    });
    assert!(found.is_empty(), "{found:?}");
    let found = problems("x = 1\n[t]", |mut root| {
        let _ = root.take("x").required();
        let _ = root.take("t").table().unwrap().take("a").required().flag();
    });
    assert_eq!(found, ["2:1: t.a: this key is required, but missing"]);
}

#[test]
fn a_number_without_its_unit_is_told_so() {
    for text in ["200", "0", "1.5", "'200'", "'0'", "'1.5'"] {
        let told = problem(text, |it| assert_eq!(it.duration(), None));
        assert!(told.starts_with("1:5: a: the unit is missing: expected a duration"), "{told}");
    }
    for text in ["'2 parsecs'", "''", "'-1s'", "'s'", "true", "'99999999999999999999s'", "'1e9s'"] {
        let told = problem(text, |it| assert_eq!(it.duration(), None));
        assert!(told.starts_with("1:5: a: expected a duration such as"), "{told}");
    }
}

#[test]
fn what_is_out_of_range_or_of_another_kind_is_told_what_was_expected() {
    let ratio = "expected a ratio from 0 to 1, or a percentage such as \"20%\"";
    for (text, got) in [("1.5", "1.5"), ("50", "50"), ("nan", "nan"), ("'120%'", "\"120%\"")] {
        let told = problem(text, |it| assert_eq!(it.ratio(), None));
        assert_eq!(told, format!("1:5: a: {ratio}, got {got}"));
    }
    for (text, got) in
        [("0", "0"), ("101", "101"), ("-1", "-1"), ("2.0", "2.0"), ("[1]", "an array")]
    {
        let told = problem(text, |it| assert_eq!(it.integer(1_u8..=100), None));
        assert_eq!(told, format!("1:5: a: expected a whole number from 1 to 100, got {got}"));
    }
    let huge = "99999999999999999999999999999999999999999999999999";
    assert!(problem(huge, |it| assert_eq!(it.integer(0..=u64::MAX), None)).ends_with(huge));
    let number = |range| problem("'x'", |it| assert_eq!(it.number(range), None));
    for (range, expected) in [
        (0.0..=f64::INFINITY, "a number of at least 0"),
        (f64::NEG_INFINITY..=1.0, "a number of at most 1"),
        (f64::NEG_INFINITY..=f64::INFINITY, "a number"),
    ] {
        assert_eq!(number(range), format!("1:5: a: expected {expected}, got \"x\""));
    }
    for text in ["-0.1", "nan", "inf", "'1'", "1e400"] {
        let told = problem(text, |it| assert_eq!(it.number(0.0..=9.5), None));
        assert!(told.starts_with("1:5: a: expected a number from 0 to 9.5, got "), "{told}");
    }
    assert_eq!(
        problem("1", |it| assert_eq!(it.flag(), None)),
        "1:5: a: expected `true` or `false`, got 1"
    );
    assert_eq!(
        problem("1979-05-27", |it| assert_eq!(it.text(), None)),
        "1:5: a: expected a string, got the date 1979-05-27"
    );
    assert_eq!(problem("1", |it| drop(it.items())), "1:5: a: expected an array, got 1");
    assert_eq!(problem("[{}, 2]", |it| drop(it.tables())), "1:10: a[1]: expected a table, got 2");
    let words = [("full", 1), ("equal", 2)];
    let word = |text| problem(text, |it| assert_eq!(it.word(&words), None));
    assert_eq!(
        word("'fully'"),
        "1:5: a: expected one of `full`, `equal`, got \"fully\"; did you mean `full`?"
    );
    assert_eq!(word("'x'"), "1:5: a: expected one of `full`, `equal`, got \"x\"");
    assert_eq!(word("7"), "1:5: a: expected one of `full`, `equal`, got 7");
}

// CF-02
#[test]
fn a_key_that_nobody_took_is_unknown_wherever_it_stands() {
    let text = "attempt = 3\n[budget]\nratoi = 1\n[[tier]]\nx.y = 1\n[\"not known\"]\n";
    let found = problems(text, |mut root| {
        drop(root.take("attempts"));
        drop(root.take("budget").table().unwrap().take("ratio"));
        drop(root.take("tier").tables().pop().unwrap().take("x").table().unwrap());
    });
    let expected = [
        "1:1: attempt: unknown key; did you mean `attempts`?",
        "3:1: budget.ratoi: unknown key; did you mean `ratio`?",
        "5:3: tier[0].x.y: unknown key",
        "6:2: \"not known\": unknown key; known here: `attempts`, `budget`, `tier`",
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_rest_of_a_table_can_be_taken_by_the_users_own_names() {
    let text = "[d.\"z.example.com\"]\n[d.b]\n[d]\nknown = 1\n";
    let found = problems(text, |mut root| {
        let mut table = root.take("d").table().unwrap();
        drop(table.take("known"));
        let rest = table.take_rest();
        let names: Vec<_> = rest.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["z.example.com", "b"]);
        rest[0].1.problem("wrong");
    });
    assert_eq!(found, ["1:1: d.\"z.example.com\": wrong"]);
}

#[test]
fn a_problem_is_shown_at_the_last_key_that_exists() {
    let text = "[d]\nbudget = { ratio = 2 }\n  cap = '1s'";
    let found = problems(text, |mut root| {
        let mut table = root.take("d").table().unwrap();
        drop((table.take("cap"), table.take("budget").table().unwrap().take("ratio")));
        for path in ["cap", "budget.floor", "budget.ratio", "breaker.window"] {
            assert_eq!(table.has(path), path == "cap" || path == "budget.ratio");
            table.problem(path, "wrong");
        }
        assert_eq!(table.paths(), ["budget.ratio", "cap"]);
    });
    let expected = [
        "1:1: d.breaker.window: wrong",
        "2:1: d.budget.floor: wrong",
        "2:20: d.budget.ratio: wrong",
        "3:9: d.cap: wrong",
    ];
    assert_eq!(found, expected);
}

#[test]
fn bytes_that_are_no_toml_are_told_where() {
    let told = |bytes: &[u8]| read("f.toml", bytes, |_| ()).unwrap_err().to_string();
    assert_eq!(told(b"a = 1\nb\xff = 2"), "f.toml:2:2: this is no UTF-8, and so no TOML");
    let found = told("ü = \nok = 1\nb == 2\n[x".as_bytes());
    let places: Vec<_> =
        found.lines().map(|line| line.split(": this is no TOML: ").next().unwrap()).collect();
    assert_eq!(places, ["f.toml:1:1", "f.toml:3:4", "f.toml:4:3"], "{found}");
    assert!(told(b"a = 1\na = 2").starts_with("f.toml:2:1: this is no TOML: duplicate key"));
    // A byte order mark is skipped, and moves no column.
    assert!(told("\u{feff}a = 1".as_bytes()).starts_with("f.toml:1:1: a: unknown key"));
    assert!(told("a = \"[\"\n".repeat(2).as_bytes()).contains(":2:1:"));
}

#[test]
fn nesting_without_end_is_refused() {
    for deep in ["a = ".to_owned() + &"[".repeat(100_000), "a.".repeat(100_000) + "a = 1"] {
        assert!(read("f.toml", deep.as_bytes(), |_| ()).is_err());
    }
}
