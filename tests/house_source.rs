//! The sources of the workspace as tokens. Comments and strings are no tokens, so nothing in them
//! is taken for code; what only tests see is told apart from what ships.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::{fs, io, path::Path};

/// What is wrong, one line for each.
pub(crate) type Problems = Vec<String>;

/// One file: its path from the root of the workspace, with `/`, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// All `.rs` files of the workspace.
    pub(crate) fn workspace() -> io::Result<Vec<Self>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for folder in ["crates", "examples", "tests", "benches"] {
            if root.join(folder).is_dir() {
                walk(&root, folder, &mut found)?;
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// `Some("abate-core")` for what is below `crates/abate-core/src`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then_some(name)
    }

    /// `["retry", "layer"]` for `crates/abate/src/retry/layer.rs`; empty for `lib.rs`.
    pub(crate) fn module(&self) -> Vec<String> {
        let inside = self.path.split_once("/src/").map_or(&*self.path, |(_, rest)| rest);
        let stem = inside.strip_suffix(".rs").unwrap_or(inside);
        let mut module: Vec<_> = stem.split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| matches!(&**last, "mod" | "lib" | "main")) {
            module.pop();
        }
        module
    }

    /// Every token, those of tests too.
    pub(crate) fn tokens(&self) -> Result<Vec<TokenTree>, String> {
        let parsed = self.text.parse::<TokenStream>();
        parsed.map(tokens_of).map_err(|error| format!("{}: is not Rust: {error}", self.path))
    }

    /// What ships, and apart from it each item that only tests see.
    pub(crate) fn split(&self) -> Result<Split, String> {
        let mut split = Split::default();
        split.shipped = split.sort(self.tokens()?);
        Ok(split)
    }
}

fn walk(root: &Path, folder: &str, found: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(root, &path, found)?;
        } else if path.ends_with(".rs") {
            found.push(Source { text: fs::read_to_string(entry.path())?, path });
        }
    }
    Ok(())
}

/// The tokens of a file, sorted by who sees them.
#[derive(Debug, Default)]
pub(crate) struct Split {
    pub(crate) shipped: Vec<TokenTree>,
    pub(crate) tests: Vec<Vec<TokenTree>>,
}

impl Split {
    /// The modules behind `#[cfg(test)]`: the name, and the length in lines of an inline one.
    pub(crate) fn test_modules(&self) -> impl Iterator<Item = (String, Option<usize>)> {
        self.tests.iter().filter_map(|item| {
            let at = item.iter().position(|token| is_ident(token, "mod"))?;
            let lines = match item.get(at + 2)? {
                TokenTree::Group(body) => {
                    Some(body.span().end().line - body.span().start().line + 1)
                }
                _ => None,
            };
            Some((item[at + 1].to_string(), lines))
        })
    }

    /// Returns what ships of `tokens` and keeps the rest.
    fn sort(&mut self, tokens: Vec<TokenTree>) -> Vec<TokenTree> {
        let mut shipped = Vec::new();
        let mut rest = tokens.into_iter().peekable();
        while let Some(token) = rest.next() {
            if is_punct(&token, '#') {
                let inner = rest.next_if(|next| is_punct(next, '!'));
                if rest.next_if(is_test_cfg).is_none() {
                    shipped.push(token);
                    shipped.extend(inner);
                } else if inner.is_some() {
                    self.tests.push(rest.collect()); // `#![cfg(test)]`: all of this scope
                    return Vec::new();
                } else {
                    let mut item = Vec::new();
                    for token in rest.by_ref() {
                        let ends = is_punct(&token, ';') || is_group(&token, Delimiter::Brace);
                        item.push(token);
                        if ends {
                            break;
                        }
                    }
                    self.tests.push(item);
                }
            } else if let TokenTree::Group(group) = token {
                let inside = self.sort(tokens_of(group.stream()));
                let mut clean = Group::new(group.delimiter(), inside.into_iter().collect());
                clean.set_span(group.span());
                shipped.push(TokenTree::Group(clean));
            } else {
                shipped.push(token);
            }
        }
        shipped
    }
}

/// `[cfg(test)]` or `[cfg(all(test, …))]`.
fn is_test_cfg(attribute: &TokenTree) -> bool {
    let Some(condition) = argument_of(attribute, "cfg") else {
        return false;
    };
    match &*condition {
        [only] => is_ident(only, "test"),
        [all, TokenTree::Group(parts)] if is_ident(all, "all") => {
            parts.stream().into_iter().any(|part| is_ident(&part, "test"))
        }
        _ => false,
    }
}

/// The tokens between the parentheses of `[name(…)]`.
pub(crate) fn argument_of(attribute: &TokenTree, name: &str) -> Option<Vec<TokenTree>> {
    let TokenTree::Group(attribute) = attribute else {
        return None;
    };
    match &*tokens_of(attribute.stream()) {
        [head, TokenTree::Group(argument)] if is_ident(head, name) => {
            Some(tokens_of(argument.stream()))
        }
        _ => None,
    }
}

/// Calls `visit` with the tokens of every level: the outermost, and those of each group below.
pub(crate) fn each_level(tokens: &[TokenTree], visit: &mut impl FnMut(&[TokenTree])) {
    visit(tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            each_level(&tokens_of(group.stream()), visit);
        }
    }
}

pub(crate) fn tokens_of(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

pub(crate) fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

pub(crate) fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

pub(crate) fn is_punct(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign)
}

pub(crate) fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}

/// Where what follows `::` begins, if `::` stands at `at`.
pub(crate) fn past_colons(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let colons = is_punct(tokens.get(at)?, ':') && is_punct(tokens.get(at + 1)?, ':');
    (colons && tokens.len() > at + 2).then_some(at + 2)
}

/// Gathers what `check` finds in each source.
pub(crate) fn each_source(
    sources: &[Source],
    mut check: impl FnMut(&Source, &mut Problems) -> Result<(), String>,
) -> Problems {
    let mut problems = Vec::new();
    for source in sources {
        if let Err(error) = check(source, &mut problems) {
            problems.push(error);
        }
    }
    problems
}

/// What stands between `use` at `at` and its `;`. (`impl Trait + use<'a>` is none.)
pub(crate) fn use_tree(tokens: &[TokenTree], at: usize) -> Option<&[TokenTree]> {
    let (word, tree) = tokens.get(at..)?.split_first()?;
    let declares = is_ident(word, "use") && !tree.first().is_some_and(|next| is_punct(next, '<'));
    declares.then(|| tree.split(|token| is_punct(token, ';')).next().unwrap_or(tree))
}
