//! `abate simulate`, as a shell runs it.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use self::shell::{Ended, abate, ended};

mod shell;

const STORM: &str = r#"title = "Twenty seconds"
length = "20s"

[[server]]
name = "orders"
workers = 10
service = "100ms"

[[clients]]
name = "shop"
calls = { poisson = 50 }

[[trouble]]
what = "down"
from = "5s"
for = "5s"

[[policy]]
name = "one try"
attempts = 1
budget = false
breaker = false

[[policy]]
name = "two <tries>"
attempts = 2
"#;

/// A folder with a scenario and two files of policies.
struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = |name: &str, text: &str| fs::write(folder.path().join(name), text);
        file("storm.toml", STORM)?;
        file("old.toml", "[defaults]\nattempts = 5\n")?;
        file("new.toml", "[dependency.orders]\nattempts = 4\n[dependency.stock]\nattempts = 2\n")?;
        Ok(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn simulate(&self, args: &[&str]) -> io::Result<Ended> {
        abate(self.path(), &[&["simulate"], args].concat()).output().map(ended)
    }

    /// The names of what is in it, but for what was there before.
    fn new_names(&self, folder: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path().join(folder))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !["storm.toml", "old.toml", "new.toml"].contains(&&*name) {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn names(json: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(json).unwrap_or_default();
    let policies = json["policies"].as_array().cloned().unwrap_or_default();
    policies.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_scenario_is_simulated_for_each_of_its_policies() {
    let ended = Folder::new().unwrap().simulate(&["storm.toml"]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    assert!(ended.out.starts_with("Twenty seconds\n"), "{}", ended.out);
    for name in ["\none try\n", "\ntwo <tries>\n", "down, 503"] {
        assert!(ended.out.contains(name), "{}", ended.out);
    }
}

#[test]
fn the_scenarios_that_come_along_are_listed_and_printed() {
    let folder = Folder::new().unwrap();
    let list = folder.simulate(&["--list"]).unwrap();
    assert_eq!((list.code, &*list.err), (Some(0), ""));
    assert_eq!(list.out.lines().count(), abate_sim::scenario::shipped_names().count());
    for name in abate_sim::scenario::shipped_names() {
        assert!(list.out.lines().any(|line| line.split_whitespace().next() == Some(name)));
        let printed = folder.simulate(&["--print", name]).unwrap();
        assert_eq!(printed.code, Some(0));
        assert_eq!(Some(&*printed.out), abate_sim::scenario::shipped(name));
    }
}

#[cfg(unix)]
#[test]
fn what_is_printed_can_be_piped_back() {
    let folder = Folder::new().unwrap();
    let mut print = abate(folder.path(), &["simulate", "--print", "collapse-ramp"]);
    let mut print = print.stdout(Stdio::piped()).spawn().unwrap();
    let mut piped = abate(folder.path(), &["simulate", "/dev/stdin", "--json"]);
    let piped = ended(piped.stdin(print.stdout.take().unwrap()).output().unwrap());
    assert!(print.wait().unwrap().success());
    assert_eq!((piped.code, &*piped.err), (Some(0), ""));
    assert_eq!(piped.out, folder.simulate(&["collapse-ramp", "--json"]).unwrap().out);
}

#[test]
fn policies_of_files_stand_beside_those_of_the_scenario_or_alone() {
    let folder = Folder::new().unwrap();
    let tried = |args: &[&str]| {
        let args = [&["storm.toml", "--json", "--policy", "new.toml"], args].concat();
        let ended = folder.simulate(&args).unwrap();
        assert_eq!((ended.code, &*ended.err), (Some(0), ""));
        names(&ended.out)
    };
    let own = ["one try", "two <tries>"];
    let new = ["new: orders", "new: stock"];
    assert_eq!(tried(&[]), [own, new].concat());
    assert_eq!(tried(&["--only"]), new);
    assert_eq!(tried(&["--only", "--policy", "old.toml"]), [&new[..], &["old"]].concat());
    assert_eq!(tried(&["--only", "--dependency", "stock"]), ["new: stock"]);
}

#[test]
fn the_same_seed_tells_the_same_and_another_does_not() {
    let folder = Folder::new().unwrap();
    for output in [&[][..], &["--json"]] {
        let with_seed = |seed: &str| {
            let args = [&["storm.toml", "--seed", seed], output].concat();
            folder.simulate(&args).unwrap().out
        };
        assert_eq!(with_seed("5"), with_seed("5"));
        assert_ne!(with_seed("5"), with_seed("6"));
    }
    let json: Value =
        serde_json::from_str(&folder.simulate(&["storm.toml", "--json"]).unwrap().out).unwrap();
    assert_eq!(json["policies"][0]["seed"], 1);
    assert_eq!(json["title"], "Twenty seconds");
}

#[test]
fn a_report_is_one_whole_page_that_names_each_policy() {
    let folder = Folder::new().unwrap();
    let args = ["storm.toml", "--policy", "old.toml", "--report", "storm.html", "--map"];
    let ended = folder.simulate(&args).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    assert_eq!(folder.new_names(".").unwrap(), ["storm.html"]);
    let page = fs::read_to_string(folder.path().join("storm.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for name in ["one try", "two &lt;tries&gt;", "old"] {
        assert!(page.contains(&format!(">{name}<")), "{name}");
    }
    assert!(!page.contains("two <tries>") && !page.contains("src=\"http"));
    // With the same arguments it is the same page.
    folder.simulate(&args).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("storm.html")).unwrap(), page);
}

#[test]
fn each_policy_has_a_table_of_its_own() {
    let folder = Folder::new().unwrap();
    let ended = folder.simulate(&["storm.toml", "--csv", "deep/tables"]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    assert_eq!(folder.new_names("deep/tables").unwrap(), ["1-one-try.csv", "2-two-tries.csv"]);
    for name in ["1-one-try.csv", "2-two-tries.csv"] {
        let table = fs::read_to_string(folder.path().join("deep/tables").join(name)).unwrap();
        let columns: Vec<_> = table.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns.len(), 1 + 20, "a head, and a line for each second");
        assert!(columns.iter().all(|count| *count == columns[0]), "{table}");
    }
}

#[test]
fn a_bad_scenario_is_told_with_file_line_key_and_what_was_expected() {
    for (old, new, told) in [
        (
            "workers",
            "worker",
            "storm.toml:6:1: server[0].worker: unknown key; did you mean `workers`?",
        ),
        ("\"100ms\"", "100", "storm.toml:7:11: server[0].service: the unit is missing: expected"),
        ("= 10\n", "= 0\n", "storm.toml:6:11: server[0].workers: expected a whole number from 1"),
        ("\"down\"", "\"dow\"", "storm.toml:14:8: trouble[0].what: expected one of `down`"),
        ("attempts = 2", "attempts = 0", "policy[1].attempts: must be at least 1"),
        ("length = \"20s\"", "", "length: this key is required, but missing"),
        ("[[server]]", "[server", "storm.toml:4:"),
    ] {
        let folder = Folder::new().unwrap();
        fs::write(folder.path().join("storm.toml"), STORM.replacen(old, new, 1)).unwrap();
        let ended = folder.simulate(&["storm.toml", "--report", "r.html"]).unwrap();
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{new}");
        assert!(
            ended.err.starts_with("error: storm.toml:") && ended.err.contains(told),
            "{told}\n{}",
            ended.err
        );
        assert!(folder.new_names(".").unwrap().is_empty());
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let folder = Folder::new().unwrap();
    let refused = |args: &[&str], told: &str| {
        let ended = folder.simulate(args).unwrap();
        assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{args:?}");
        assert!(ended.err.contains(told), "{args:?}: {}", ended.err);
        assert!(folder.new_names(".").unwrap().is_empty(), "{args:?}");
    };
    refused(&[], "required arguments were not provided");
    refused(&["none.toml"], "error: none.toml: there is no such file\n");
    refused(&["metastabel"], "no scenario that comes along; did you mean `metastable`?\n");
    refused(&["zzz"], "there are collapse-ramp, ");
    refused(&["--print", "herb"], "did you mean `herd`?\n");
    refused(&["old.toml"], "old.toml:1:2: defaults: unknown key");
    refused(&["storm.toml", "--policy", "none.toml"], "none.toml: there is no such file\n");
    refused(&["storm.toml", "--policy", "storm.toml"], "error: storm.toml:1:1: title: unknown key");
    refused(&["storm.toml", "--seed", "x"], "invalid value 'x' for '--seed <N>'");
    refused(&["storm.toml", "--only"], "--policy <POLICIES>");
    refused(&["storm.toml", "--map"], "--report <FILE>");
    refused(&["storm.toml", "--reports", "r.html"], "'--report'");
    refused(
        &["storm.toml", "--policy", "new.toml", "--dependency", "order"],
        "error: new.toml: there is no dependency `order` in it; did you mean `orders`?\n",
    );
    let batch = STORM.replacen("poisson = 50", "batch = \"0s\"", 1);
    fs::write(folder.path().join("storm.toml"), batch).unwrap();
    refused(&["storm.toml", "--report", "r.html", "--map"], "there is nothing to vary");
    let no_policy = STORM.split("[[policy]]").next().unwrap();
    fs::write(folder.path().join("storm.toml"), no_policy).unwrap();
    refused(&["storm.toml"], "there is no policy to try");
    if cfg!(unix) {
        refused(&["."], "error: .: is a folder; expected a file\n");
        refused(&["/dev/zero"], "error: /dev/zero: is larger than 16 MiB\n");
    }
}

#[test]
fn what_cannot_be_written_is_told_and_leaves_nothing() {
    let folder = Folder::new().unwrap();
    let refused = |args: &[&str], path: &str| {
        let ended = folder.simulate(&[&["storm.toml"], args].concat()).unwrap();
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.err);
        let told = format!("error: {path}: cannot be written: ");
        assert!(ended.err.starts_with(&told), "{args:?}: {}", ended.err);
        assert!(folder.new_names(".").unwrap().is_empty(), "{args:?}");
    };
    refused(&["--report", "none/r.html"], "none/r.html");
    refused(&["--report", "."], ".");
    refused(&["--report", "storm.toml/r.html"], "storm.toml/r.html");
    refused(&["--csv", "old.toml"], "old.toml");
    refused(&["--csv", "old.toml/tables"], "old.toml/tables");
    if cfg!(target_os = "linux") {
        refused(&["--report", "/dev/full"], "/dev/full");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_the_output_is_told() {
    let folder = Folder::new().unwrap();
    for args in [&["storm.toml"][..], &["storm.toml", "--json"], &["--list"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = abate(folder.path(), &[&["simulate"], args].concat());
        let ended = ended(command.stdout(full).output().unwrap());
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(ended.err.starts_with("error: cannot write: "), "{}", ended.err);
    }
}

#[test]
fn nothing_is_coloured_that_is_not_for_a_terminal() {
    let folder = Folder::new().unwrap();
    for args in [&["storm.toml"][..], &["--list"], &["zzz"]] {
        let plain = folder.simulate(args).unwrap();
        assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'), "{args:?}");
        let mut forced = abate(folder.path(), &[&["simulate"], args].concat());
        let coloured = ended(forced.env("CLICOLOR_FORCE", "1").output().unwrap());
        assert!(coloured.out.contains('\u{1b}') || coloured.err.contains('\u{1b}'), "{args:?}");
    }
}

/// As `abate simulate storm.toml | head -n 1` does.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = Folder::new().unwrap();
    for args in [&["storm.toml"][..], &["storm.toml", "--json"], &["--list"]] {
        let mut command = abate(folder.path(), &[&["simulate"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = ended(child.wait_with_output().unwrap());
        assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn the_scenario_in_the_docs_is_a_good_one() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/simulator.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (_, scenario) = docs.split_once("```toml\n").unwrap();
    let folder = Folder::new().unwrap();
    let file = folder.path().join("storm.toml");
    fs::write(file, scenario.split("```").next().unwrap()).unwrap();
    let ended = folder.simulate(&["storm.toml", "--json"]).unwrap();
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    assert_eq!(names(&ended.out), ["one try", "default"]);
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = Folder::new().unwrap().simulate(&["--help"]).unwrap();
    assert_eq!(help.code, Some(0));
    assert!(help.out.contains("Examples:\n  abate simulate --list"), "{}", help.out);
    assert!(help.out.contains("Exit codes:"), "{}", help.out);
}
