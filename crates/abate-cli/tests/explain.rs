//! `abate explain`, as a shell runs it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use self::shell::{Ended, abate, ended};

mod shell;

/// A folder with a file in it.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn with(text: impl AsRef<[u8]>) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("p.toml"), text)?;
        Ok(Self { folder })
    }

    /// Explains the file by its bare name, so that messages are the same everywhere.
    fn explain(&self, args: &[&str]) -> io::Result<Ended> {
        explain(self.folder.path(), &[&["p.toml"], args].concat())
    }
}

fn explain(folder: &Path, args: &[&str]) -> io::Result<Ended> {
    abate(folder, &[&["explain"], args].concat()).output().map(ended)
}

const PAYMENTS: &str = "[dependency.payments]\nattempts = 4\nbase = '100ms'\ntotal_timeout = '10s'\n\
    attempt_timeout = '2.5s'\n";

#[test]
fn a_policy_is_explained_with_its_waits_its_time_and_its_load() {
    let ended = Folder::with(PAYMENTS).unwrap().explain(&["--layers", "5"]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    for expected in [
        "payments  4 attempts · 100 ms × 2 up to 10 s · full jitter · 2.5 s an attempt · 10 s in all",
        "      3   400 ms     0   201 ms   396 ms   400 ms           351 ms   622 ms   700 ms\n",
        "The cap of 10 s does not bind: it would from retry 8 on.",
        "A caller is held 10 s at the most: the total timeout. Without it, 10.7 s: 4 × 2.5 s and 700 ms",
        "       3            4×                    1.73×             64×\n",
        "       5            4×                    2.49×           1024×\n",
        "Each success earns 0.2 retries, and each process gets 0.2 a second besides.",
    ] {
        assert!(ended.out.contains(expected), "{expected}\n{}", ended.out);
    }
    assert!(!ended.out.contains("warning"), "{}", ended.out);
}

#[test]
fn nothing_is_coloured_that_is_not_for_a_terminal() {
    let folder = Folder::with("[defaults]\nbreaker = false").unwrap();
    assert!(!folder.explain(&[]).unwrap().out.contains('\u{1b}'));
    let mut forced = abate(folder.folder.path(), &["explain", "p.toml"]);
    let coloured = ended(forced.env("CLICOLOR_FORCE", "1").output().unwrap());
    assert!(coloured.out.contains('\u{1b}'), "{}", coloured.out);
    let plain = ended(forced.env("NO_COLOR", "1").env_remove("CLICOLOR_FORCE").output().unwrap());
    assert!(!plain.out.contains('\u{1b}'));
    assert!(!folder.explain(&["--layers", "0"]).unwrap().err.contains('\u{1b}'));
}

#[test]
fn an_untouched_default_is_warned_of_nothing() {
    for text in ["", "# nothing", "[defaults]", "[dependency.d]"] {
        let ended = Folder::with(text).unwrap().explain(&[]).unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert!(ended.out.contains("3 attempts"), "{}", ended.out);
        assert!(!ended.out.contains("warning"), "{text}: {}", ended.out);
    }
}

#[test]
fn what_a_policy_seldom_means_is_warned_of_once() {
    for (lines, key) in [
        ("jitter = 'none'", "jitter"),
        ("base = '0s'", "base"),
        ("cap = '20s'", "cap"),
        ("cap = '20s'\ncurve = 'fixed'", "cap"),
        ("attempts = 4", "attempt_timeout"),
        ("attempts = 20", "attempts"),
        ("budget = false", "budget"),
        ("breaker = false", "breaker"),
        ("breaker.minimum_calls = 100", "breaker.minimum_calls"),
        ("breaker.open_for = '60s'\nbreaker.open_at_most = '300s'", "breaker.open_for"),
        ("breaker.open_at_most = '300s'", "breaker.open_at_most"),
    ] {
        let folder = Folder::with(format!("[dependency.d]\n{lines}\n")).unwrap();
        let ended = folder.explain(&[]).unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let warnings: Vec<_> =
            ended.out.lines().filter(|line| line.starts_with("warning:")).collect();
        assert_eq!(warnings.len(), 1, "{lines}: {}", ended.out);
        assert!(warnings[0].starts_with(&format!("warning: {key}: ")), "{lines}: {warnings:?}");
    }
    // Without a retry there is nothing to spread.
    let one = Folder::with("[dependency.d]\nattempts = 1\njitter = 'none'").unwrap();
    let ended = one.explain(&[]).unwrap();
    assert!(ended.out.contains("there is nothing to wait for"), "{}", ended.out);
    assert!(!ended.out.contains("warning"), "{}", ended.out);
}

#[test]
fn one_dependency_can_be_chosen_and_a_wrong_name_is_told_the_right_one() {
    let text = format!("{PAYMENTS}[dependency.stock]\nattempts = 2\n");
    let folder = Folder::with(&text).unwrap();
    let both = folder.explain(&[]).unwrap().out;
    assert!(both.starts_with("payments  ") && both.contains("\nstock  2 attempts"), "{both}");
    let one = folder.explain(&["--dependency", "stock"]).unwrap();
    assert!(one.out.starts_with("stock  2 attempts") && !one.out.contains("payments"));
    let wrong = folder.explain(&["--dependency", "paymnets"]).unwrap();
    assert_eq!((wrong.code, &*wrong.out), (Some(2), ""));
    let told = "error: p.toml: there is no dependency `paymnets` in it; did you mean `payments`?\n";
    assert_eq!(wrong.err, told);
    let far = folder.explain(&["--dependency", "zzz"]).unwrap().err;
    assert!(far.ends_with("`zzz` in it; it has payments, stock\n"), "{far}");
}

#[test]
fn a_bad_file_is_told_with_file_line_key_what_was_expected_and_the_nearest_name() {
    let text = "[dependency.d]\nattempt = 4\nbase = 200\njitter = 'fully'\n[dependency.d.budget]\n  ratio = 2\n";
    let ended = Folder::with(text).unwrap().explain(&[]).unwrap();
    assert_eq!((ended.code, &*ended.out), (Some(2), ""));
    assert_eq!(
        ended.err,
        "error: p.toml:2:1: dependency.d.attempt: unknown key; did you mean `attempts`?\n\
         error: p.toml:3:8: dependency.d.base: the unit is missing: expected a duration such as \
         \"200ms\", \"1.5s\" or \"2m\", got 200\n\
         error: p.toml:4:10: dependency.d.jitter: expected one of `none`, `full`, `equal`, \
         `decorrelated`, `added`, `added_in_steps`, got \"fully\"; did you mean `full`?\n\
         error: p.toml:6:11: dependency.d.budget.ratio: expected a ratio from 0 to 1, or a \
         percentage such as \"20%\", got 2\n"
    );
}

#[test]
fn what_is_no_file_of_policies_is_refused() {
    let folder = Folder::with([0xff, 0xfe, 0]).unwrap();
    let refused = |args: &[&str], told: &str| {
        let ended = explain(folder.folder.path(), args).unwrap();
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}");
        assert!(ended.err.starts_with(told), "{args:?}: {}", ended.err);
    };
    refused(&["p.toml"], "error: p.toml:1:1: this is no UTF-8");
    refused(&["none.toml"], "error: none.toml: there is no such file\n");
    if cfg!(unix) {
        refused(&["."], "error: .: is a folder; expected a file\n");
        refused(&["/dev/zero"], "error: /dev/zero: is larger than 16 MiB\n");
    }
    refused(&[], "error: the following required arguments");
    refused(&["p.toml", "--layers", "17"], "error: invalid value '17'");
    refused(&["p.toml", "--dependenzy", "d"], "error: unexpected argument '--dependenzy'");
}

#[test]
fn json_has_the_same_figures() {
    let ended = Folder::with(PAYMENTS).unwrap().explain(&["--json"]).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let json: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    let policy = &json["policies"][0];
    assert_eq!(policy["dependency"], "payments");
    assert_eq!(policy["waits"].as_array().map(Vec::len), Some(3));
    assert_eq!(policy["waits"][2]["max"], 0.4);
    assert_eq!(policy["total_wait"]["max"], 0.7);
    assert_eq!(policy["held"]["at_most"], 10.0);
    assert_eq!(policy["load"][2]["each_without_budget"], 64.0);
    assert_eq!(policy["cap"], serde_json::json!({ "binds": false, "from_retry": 8 }));
}

#[test]
fn the_figures_are_the_same_each_time() {
    let folder = Folder::with(PAYMENTS).unwrap();
    assert_eq!(folder.explain(&["--json"]).unwrap().out, folder.explain(&["--json"]).unwrap().out);
}

#[test]
fn help_has_examples_and_exit_codes() {
    let folder = Folder::with("").unwrap();
    let help = explain(folder.folder.path(), &["--help"]).unwrap();
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Examples:\n  abate explain policies.toml"), "{}", help.out);
    assert!(help.out.contains("Exit codes:"), "{}", help.out);
}

/// As `abate explain p.toml | head -n 1` does.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let many: String = (0..400).map(|n| format!("[dependency.d{n}]\nattempts = 1\n")).collect();
    let folder = Folder::with(many).unwrap();
    let mut command = abate(folder.folder.path(), &["explain", "p.toml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
}

#[test]
fn the_policies_among_the_examples_are_good() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let name = file.to_string_lossy();
        let ended = explain(Path::new("."), &[&name]).unwrap();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
}
