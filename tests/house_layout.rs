//! How the house is laid out: who may import whom, and how large a file may be. Each check takes
//! the sources as values and returns what is wrong, one line for each.

use crate::house_imports::{File, Import, imports, with_crates};
use crate::house_source::{Problems, Source, each_source};
use std::collections::{BTreeMap, BTreeSet};

/// abate-core from the top down: a module imports only from rungs above its own.
const LADDER: [&[&str]; 9] = [
    &["ratio", "rng", "deadline", "decay", "striped", "sync"],
    &["outcome", "spare"],
    &["retry_after", "safety"],
    &["classify"],
    &["backoff", "budget", "breaker", "cooldown", "grpc"],
    &["fleet"],
    &["policy"],
    &["session"],
    &["config"],
];

const LONGEST_FILE: usize = 400;
const LONGEST_INLINE_TESTS: usize = 120;

pub(crate) fn ladder(sources: &[Source]) -> Problems {
    with_crates(sources, |name, files, problems| {
        if name != "abate-core" {
            return;
        }
        for file in files.iter().filter(|file| rung(file).is_none() && !file.module.is_empty()) {
            problems.push(format!(
                "{}: `{}` has no rung: give it one in LADDER (tests/house_layout.rs) and in docs/architecture.md, \
                 below all that it imports; or make it a part of the module that it serves",
                file.path, file.module[0]
            ));
        }
        for Import { from, to, line } in imports(files) {
            let (Some(here), Some(there)) = (rung(from), rung(to)) else {
                if rung(from).is_some() && to.module.is_empty() {
                    let from = &from.path;
                    problems.push(format!(
                        "{from}:{line}: imports from lib.rs: name the module that defines it"
                    ));
                }
                continue;
            };
            if from.module[0] != to.module[0] && there >= here {
                problems.push(format!(
                    "{}:{line}: `{}` (rung {here}) imports `{}` (rung {there}): imports go up the ladder only",
                    from.path, from.module[0], to.module[0]
                ));
            }
        }
    })
}

fn rung(file: &File) -> Option<usize> {
    let module = file.module.first()?;
    LADDER.iter().position(|rung| rung.contains(&module.as_str()))
}

pub(crate) fn circles(sources: &[Source]) -> Problems {
    with_crates(sources, |name, files, problems| {
        let mut of_files = BTreeMap::<_, BTreeSet<_>>::new();
        let mut of_folders = BTreeMap::<_, BTreeSet<_>>::new();
        for Import { from, to, .. } in imports(files) {
            of_files.entry(from.name()).or_default().insert(to.name());
            if let (Some(from), Some(to)) = (from.module.first(), to.module.first())
                && from != to
            {
                of_folders.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        let found = [circles_in(&of_files), circles_in(&of_folders)].concat();
        let found: BTreeSet<_> = found.into_iter().collect(); // a file may be all of its folder
        problems.extend(found.into_iter().map(|circle| format!("crates/{name}: {circle}")));
    })
}

/// `a -> b -> a` for each circle that a walk closes.
fn circles_in(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    fn walk<'a>(
        graph: &'a BTreeMap<String, BTreeSet<String>>,
        node: &'a str,
        trail: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
        found: &mut Vec<String>,
    ) {
        if let Some(start) = trail.iter().position(|seen| *seen == node) {
            found.push(format!("{} -> {node}", trail[start..].join(" -> ")));
        } else if !done.contains(node) {
            trail.push(node);
            for next in graph.get(node).into_iter().flatten() {
                walk(graph, next, trail, done, found);
            }
            trail.pop();
            done.insert(node);
        }
    }
    let (mut done, mut found) = (BTreeSet::new(), Vec::new());
    for node in graph.keys() {
        walk(graph, node, &mut Vec::new(), &mut done, &mut found);
    }
    found
}

pub(crate) fn middlewares(sources: &[Source]) -> Problems {
    with_crates(sources, |name, files, problems| {
        if name != "abate" {
            return;
        }
        let has = |folder: &[String], door: &str| {
            files.iter().any(|file| file.module == [folder, &[door.to_owned()]].concat())
        };
        let middleware = |file: &File| {
            let mut folders = (1..=file.module.len()).map(|depth| &file.module[..depth]);
            let folder = folders.find(|folder| has(folder, "layer") && has(folder, "service"))?;
            Some(folder.join("::"))
        };
        for Import { from, to, line } in imports(files) {
            if let (Some(here), Some(there)) = (middleware(from), middleware(to))
                && here != there
                && here != "stack"
            {
                problems.push(format!(
                    "{}:{line}: middleware `{here}` imports middleware `{there}`: move what both need below them",
                    from.path
                ));
            }
        }
    })
}

pub(crate) fn sizes(sources: &[Source]) -> Problems {
    each_source(sources, |source, problems| {
        let path = &source.path;
        let lines = source.text.lines().count();
        if lines > LONGEST_FILE {
            problems.push(format!("{path}: {lines} lines, more than {LONGEST_FILE}: split it"));
        }
        for (name, lines) in source.split()?.test_modules() {
            if let Some(lines) = lines.filter(|lines| *lines > LONGEST_INLINE_TESTS) {
                problems.push(format!(
                    "{path}: `mod {name}` has {lines} lines, more than {LONGEST_INLINE_TESTS}: move it to {name}.rs"
                ));
            }
        }
        let folder = path.replace(".rs", "/");
        if sources.iter().any(|other| other.path.starts_with(&folder)) {
            problems.push(format!("{path}: stands beside {folder}: make it {folder}mod.rs"));
        }
        Ok(())
    })
}
