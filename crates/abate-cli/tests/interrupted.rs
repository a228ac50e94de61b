//! A command that is interrupted, as by Ctrl-C.
#![cfg(unix)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use self::shell::{abate, ended};

mod shell;

const SIGINT: i32 = 2;

/// Hours of calls: far longer than it takes to interrupt it.
const LONG: &str = r#"
title = "Hours"
length = "5h"
[[server]]
name = "orders"
service = "1ms"
[[clients]]
name = "shop"
calls = { poisson = 5000 }
[[policy]]
name = "default"
"#;

#[test]
fn an_interrupted_simulation_leaves_the_old_report_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, report) = (folder.path().join("pipe"), folder.path().join("r.html"));
    fs::write(&report, "the old one").unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut command = abate(folder.path(), &["simulate", "pipe", "--report", "r.html"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A pipe is opened when both sides have come: then the command is at its work.
    fs::write(&pipe, LONG).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());

    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(SIGINT));
    let ended = ended(output);
    assert_eq!((ended.code, &*ended.out, &*ended.err), (None, "", ""));
    assert_eq!(fs::read_to_string(&report).unwrap(), "the old one");
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["pipe", "r.html"]);
}
