//! What no line of the house may say. Each check takes the sources as values and returns what is
//! wrong, one line for each.

use crate::house_imports::each_shipped;
use crate::house_source::{
    Problems, Source, argument_of, each_level, each_source, is_group, is_ident, is_punct, line_of,
    past_colons, tokens_of, use_tree,
};
use proc_macro2::{Delimiter, TokenTree};

/// The one file that reads the clock, of each crate that has a clock at all.
const CLOCKS: [&str; 2] = ["crates/abate/src/clock.rs", "crates/abate-redis/src/clock.rs"];

const ORDERINGS: [&str; 5] = ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"];

pub(crate) fn leftovers(sources: &[Source]) -> Problems {
    each_source(sources, |source, problems| {
        let mut found = |token: &TokenTree, what: &str| {
            problems.push(format!("{}:{}: {what}", source.path, line_of(token)));
        };
        each_level(&source.tokens()?, &mut |tokens| {
            for (at, token) in tokens.iter().enumerate() {
                let after = &tokens[at + 1..];
                for name in ["todo", "unimplemented"] {
                    if is_ident(token, name) && is_macro_call(after) {
                        found(token, &format!("`{name}!`: write it or leave it out"));
                    }
                }
                let attribute = after.iter().find(|next| !is_punct(next, '!'));
                if let (true, Some(attribute)) = (is_punct(token, '#'), attribute) {
                    if attribute_is(attribute, "ignore") {
                        found(token, "`#[ignore]`: a test runs, or says aloud what it lacks");
                    }
                    if attribute_is(attribute, "allow") {
                        found(token, "bare `#[allow]`: use `#[expect(lint, reason = \"…\")]`");
                    }
                    if ignores_example(attribute) {
                        found(token, "an example marked `ignore`: examples run, or are `text`");
                    }
                }
            }
        });
        Ok(())
    })
}

fn is_macro_call(after: &[TokenTree]) -> bool {
    matches!(after, [bang, TokenTree::Group(_), ..] if is_punct(bang, '!'))
}

/// `[name]`, `[name = …]`, `[name(…)]` and `[cfg_attr(…, name…)]`; `allow` with a reason is not bare.
fn attribute_is(attribute: &TokenTree, name: &str) -> bool {
    let TokenTree::Group(group) = attribute else {
        return false;
    };
    let parts = argument_of(attribute, "cfg_attr").unwrap_or_else(|| tokens_of(group.stream()));
    parts.split(|token| is_punct(token, ',')).any(|part| match part {
        [head, TokenTree::Group(lints)] if is_ident(head, name) => {
            !lints.stream().into_iter().any(|token| is_ident(&token, "reason"))
        }
        [head, ..] => is_ident(head, name),
        [] => false,
    })
}

/// A line of docs that opens an example with `ignore`.
fn ignores_example(attribute: &TokenTree) -> bool {
    let TokenTree::Group(group) = attribute else {
        return false;
    };
    match &*tokens_of(group.stream()) {
        [doc, _, TokenTree::Literal(line)] if is_ident(doc, "doc") => {
            let line = line.to_string();
            line.split_once("```").is_some_and(|(_, marks)| marks.contains("ignore"))
        }
        _ => false,
    }
}

pub(crate) fn orderings(sources: &[Source]) -> Problems {
    each_shipped(sources, |source, tokens, problems| {
        let lines: Vec<_> = source.text.lines().collect();
        let explained = |line: usize, statement: usize| {
            let first = statement.min(line.saturating_sub(2)).saturating_sub(1).max(1);
            lines[first - 1..line].iter().any(|line| has_comment(line))
        };
        let mut found = Vec::new();
        find_orderings(tokens, None, &imported_orderings(tokens), &mut found);
        found.dedup();
        for (line, statement) in found {
            if !explained(line, statement) {
                problems.push(format!(
                    "{}:{line}: an `Ordering` without its why: say it in a comment here or above the statement",
                    source.path
                ));
            }
        }
    })
}

/// The orderings that the file names without `Ordering::`.
fn imported_orderings(tokens: &[TokenTree]) -> Vec<&'static str> {
    let mut imported = Vec::new();
    each_level(tokens, &mut |tokens| {
        for at in 0..tokens.len() {
            each_level(use_tree(tokens, at).unwrap_or_default(), &mut |tree| {
                let names = |name: &&str| tree.iter().any(|token| is_ident(token, name));
                imported.extend(ORDERINGS.iter().copied().filter(names));
            });
        }
    });
    imported
}

/// The line of each atomic ordering outside of `use`, and that where its statement begins.
fn find_orderings(
    tokens: &[TokenTree],
    outer: Option<usize>,
    imported: &[&str],
    found: &mut Vec<(usize, usize)>,
) {
    let (mut statement, mut at) = (outer, 0);
    while let Some(token) = tokens.get(at) {
        if let Some(tree) = use_tree(tokens, at) {
            at += tree.len() + 1;
            continue;
        }
        let start = *statement.get_or_insert(line_of(token));
        let qualified = at >= 3
            && past_colons(tokens, at - 2) == Some(at)
            && tokens[at - 3].to_string().ends_with("Ordering");
        let known: &[&str] = if qualified { &ORDERINGS } else { imported };
        if known.iter().any(|ordering| is_ident(token, ordering)) {
            found.push((line_of(token), start));
        }
        let block = is_group(token, Delimiter::Brace);
        if let TokenTree::Group(group) = token {
            let outer = (!block).then_some(start);
            find_orderings(&tokens_of(group.stream()), outer, imported, found);
        }
        if outer.is_none() && (block || is_punct(token, ';') || is_punct(token, ',')) {
            statement = None;
        }
        at += 1;
    }
}

/// A comment for who reads the code: no doc comment, no address.
fn has_comment(line: &str) -> bool {
    line.match_indices("//").any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + 2..]);
        !before.ends_with([':', '/']) && !after.starts_with(['/', '!'])
    })
}

pub(crate) fn clock(sources: &[Source]) -> Problems {
    each_shipped(sources, |source, tokens, problems| {
        let checked = matches!(source.crate_name(), Some("abate" | "abate-core" | "abate-redis"));
        if !checked || CLOCKS.contains(&source.path.as_str()) {
            return;
        }
        each_level(tokens, &mut |tokens| {
            for (at, token) in tokens.iter().enumerate() {
                let now =
                    past_colons(tokens, at + 1).is_some_and(|next| is_ident(&tokens[next], "now"));
                if now && (is_ident(token, "Instant") || is_ident(token, "SystemTime")) {
                    problems.push(format!(
                        "{}:{}: reads the clock: only {} does; elsewhere `now` is an argument",
                        source.path,
                        line_of(token),
                        CLOCKS.join(" and ")
                    ));
                }
            }
        });
    })
}
