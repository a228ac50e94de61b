//! docs/contract.md against the tests that it names: every cell has one, every one is there, and
//! none is left out.

use crate::house_source::{
    Problems, Source, argument_of, each_level, is_group, is_ident, is_punct, tokens_of,
};
use proc_macro2::{Delimiter, TokenTree};
use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

const DOCUMENT: &str = "docs/contract.md";
const BINARIES: [&str; 2] = ["contract", "foreign"];

/// The document of the workspace.
pub(crate) fn document() -> io::Result<Source> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(DOCUMENT);
    Ok(Source { path: DOCUMENT.to_owned(), text: fs::read_to_string(path)? })
}

/// `sources` are those of the tests, and the document among them.
pub(crate) fn contract(sources: &[Source]) -> Problems {
    let mut problems = Vec::new();
    let Some(document) = sources.iter().find(|source| source.path == DOCUMENT) else {
        return vec![format!("{DOCUMENT} is missing")];
    };
    let named = named(&document.text, &mut problems);
    let mut there = BTreeSet::new();
    for source in sources {
        let stem = source.path.strip_prefix("tests/").and_then(|path| path.strip_suffix(".rs"));
        let Some(stem) = stem else { continue };
        let mut words = stem.split('_');
        if words.next().is_some_and(|first| BINARIES.contains(&first)) {
            match source.tokens() {
                Ok(tokens) => there.extend(tests(stem, &tokens)),
                Err(error) => problems.push(error),
            }
        }
    }
    for missing in named.difference(&there) {
        problems.push(format!("{DOCUMENT}: names `{missing}`, and there is no such test"));
    }
    for missing in there.difference(&named) {
        problems.push(format!("{DOCUMENT}: has no cell for the test `{missing}`"));
    }
    problems
}

/// The tests in the tables; a cell that names none, or one twice, is a problem.
fn named(text: &str, problems: &mut Problems) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    let mut width = 0;
    for (nth, line) in text.lines().enumerate() {
        let row = line.trim().strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        let Some(row) = row else {
            width = 0;
            continue;
        };
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        if width == 0 {
            width = cells.len(); // the head
        } else if cells.iter().all(|cell| cell.starts_with("---")) {
            continue;
        } else if cells.len() != width {
            problems.push(format!("{DOCUMENT}:{}: {} cells, not {width}", nth + 1, cells.len()));
        }
        // The first column says what the row is about.
        for cell in cells.iter().skip(1) {
            let test = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
            match test.filter(|test| test.contains("::") && !test.contains('`')) {
                Some(test) if !named.insert(test.to_owned()) => {
                    problems.push(format!("{DOCUMENT}:{}: `{test}` stands twice", nth + 1));
                }
                None if !is_head(text, nth) => {
                    problems.push(format!("{DOCUMENT}:{}: `{cell}` is no test", nth + 1));
                }
                _ => {}
            }
        }
    }
    named
}

/// Whether a line of dashes follows.
fn is_head(text: &str, nth: usize) -> bool {
    text.lines().nth(nth + 1).is_some_and(|next| next.trim().starts_with("|---"))
}

/// The tests of a file: those that `cells!` makes, and those written out.
fn tests(stem: &str, tokens: &[TokenTree]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_level(tokens, &mut |level| {
        for (at, token) in level.iter().enumerate() {
            if is_ident(token, "cells")
                && level.get(at + 1).is_some_and(|next| is_punct(next, '!'))
                && let Some(TokenTree::Group(cells)) = level.get(at + 2)
            {
                found.extend(made(&tokens_of(cells.stream())));
            }
            if is_test(token) {
                let rest = level[at..].iter().skip_while(|token| !is_ident(token, "fn"));
                if let Some(name) = rest.skip(1).map(ToString::to_string).next() {
                    found.insert(format!("{stem}::{name}"));
                }
            }
        }
    });
    found
}

/// `[test]` or `[tokio::test]`, with or without arguments.
fn is_test(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else { return false };
    let tokens = tokens_of(group.stream());
    let tail = match &*tokens {
        [rest @ .., TokenTree::Group(_)] => rest,
        all => all,
    };
    let path =
        tail.iter().all(|token| matches!(token, TokenTree::Ident(_)) || is_punct(token, ':'));
    is_group(attribute, Delimiter::Bracket)
        && path
        && tail.last().is_some_and(|last| is_ident(last, "test"))
        && argument_of(attribute, "cfg").is_none()
}

/// `law::layer` for each name before a single colon, of the list in brackets and after it.
fn made(cells: &[TokenTree]) -> Vec<String> {
    let Some((TokenTree::Group(layers), laws)) = cells.split_first() else { return Vec::new() };
    let layers = keys(&tokens_of(layers.stream()));
    let of_law = |law: String| layers.iter().map(move |layer| format!("{law}::{layer}"));
    keys(laws).into_iter().flat_map(of_law).collect()
}

fn keys(tokens: &[TokenTree]) -> Vec<String> {
    let entries = tokens.split(|token| is_punct(token, ',') || is_punct(token, ';'));
    entries.filter_map(|entry| entry.first()).map(ToString::to_string).collect()
}
