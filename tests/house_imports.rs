//! Who imports from whom. A name is followed through `use` to the file that defines it, so that a
//! facade (`pub use layer::RetryLayer` in a `mod.rs` or `lib.rs`) neither hides an import nor makes a circle.

use crate::house_source::{
    Problems, Source, each_source, is_group, is_ident, is_punct, line_of, past_colons, tokens_of,
    use_tree,
};
use proc_macro2::{Delimiter, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// One file of a crate, without its tests.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) module: Vec<String>,
    paths: Vec<Mention>,
    /// The identifiers outside of `use`.
    words: BTreeSet<String>,
}

/// From file to file, with the line that first says so.
#[derive(Debug)]
pub(crate) struct Import<'a> {
    pub(crate) from: &'a File,
    pub(crate) to: &'a File,
    pub(crate) line: usize,
}

/// A path as the code has it.
#[derive(Debug)]
struct Mention {
    /// The module it stands in, inline ones included.
    scope: Vec<String>,
    segments: Vec<String>,
    line: usize,
    /// The name that a `use` gives it; none for a glob, and for a path in an expression.
    name: Option<String>,
    public: bool,
}

/// The files of each crate that ship.
fn crates(sources: &[Source]) -> Result<BTreeMap<&str, Vec<File>>, String> {
    let mut crates = BTreeMap::new();
    let mut only_for_tests = BTreeSet::new();
    for source in sources {
        let Some(name) = source.crate_name() else {
            continue;
        };
        let (module, split) = (source.module(), source.split()?);
        for (test, _) in split.test_modules() {
            only_for_tests.insert((name, [&*module, &[test]].concat()));
        }
        let file = File::new(source.path.clone(), module, &split.shipped);
        crates.entry(name).or_insert_with(Vec::new).push(file);
    }
    for (name, files) in &mut crates {
        files.retain(|file| {
            let mut above = (1..=file.module.len()).map(|depth| file.module[..depth].to_vec());
            !above.any(|above| only_for_tests.contains(&(*name, above)))
        });
    }
    Ok(crates)
}

/// Gathers what `check` finds in each crate.
pub(crate) fn with_crates(
    sources: &[Source],
    mut check: impl FnMut(&str, &[File], &mut Problems),
) -> Problems {
    let mut problems = Vec::new();
    match crates(sources) {
        Ok(crates) => crates.iter().for_each(|(name, files)| check(name, files, &mut problems)),
        Err(error) => problems.push(error),
    }
    problems
}

/// Gathers what `check` finds in the code of each file that ships.
pub(crate) fn each_shipped(
    sources: &[Source],
    mut check: impl FnMut(&Source, &[TokenTree], &mut Problems),
) -> Problems {
    let files =
        with_crates(sources, |_, files, paths| paths.extend(files.iter().map(|f| f.path.clone())));
    each_source(sources, |source, problems| {
        if files.contains(&source.path) {
            check(source, &source.split()?.shipped, problems);
        }
        Ok(())
    })
}

/// All imports among the files of one crate.
pub(crate) fn imports(files: &[File]) -> Vec<Import<'_>> {
    let mut found = BTreeMap::new();
    for (at, from) in files.iter().enumerate() {
        for mention in &from.paths {
            let target = mention.absolute(files).and_then(|path| definition(&path, files, 0));
            if let Some(to) = target
                && to != at
                && !from.only_shows(mention, &files[to])
            {
                found.entry((at, to)).or_insert(mention.line);
            }
        }
    }
    let import = |((from, to), line)| Import { from: &files[from], to: &files[to], line };
    found.into_iter().map(import).collect()
}

/// The file that defines what `path` names: the deepest module on the way, or where its `use` leads.
fn definition(path: &[String], files: &[File], hops: usize) -> Option<usize> {
    let (at, file) = files
        .iter()
        .enumerate()
        .filter(|(_, file)| path.starts_with(&file.module))
        .max_by_key(|(_, file)| file.module.len())?;
    let [name, rest @ ..] = &path[file.module.len()..] else {
        return Some(at);
    };
    match file.paths.iter().find(|mention| mention.name.as_ref() == Some(name)) {
        Some(mention) if hops < 16 => {
            let mut onward = mention.absolute(files)?;
            onward.extend_from_slice(rest);
            definition(&onward, files, hops + 1)
        }
        _ => Some(at),
    }
}

impl Mention {
    /// The path from the root of the crate; none for what is local or of another crate.
    fn absolute(&self, files: &[File]) -> Option<Vec<String>> {
        let mut base = self.scope.clone();
        let mut rest = self.segments.iter().map(String::as_str).peekable();
        match *rest.peek()? {
            "crate" => base.clear(),
            "self" | "super" => {}
            child => {
                let child = [&*base, &[child.to_owned()]].concat();
                files.iter().find(|file| file.module == child)?;
            }
        }
        rest.next_if(|first| matches!(*first, "crate" | "self"));
        while rest.next_if_eq(&"super").is_some() {
            base.pop();
        }
        base.extend(rest.map(str::to_owned));
        Some(base)
    }
}

impl File {
    fn new(path: String, module: Vec<String>, tokens: &[TokenTree]) -> Self {
        let mut scope = module.clone();
        let mut file = Self { path, module, paths: Vec::new(), words: BTreeSet::new() };
        file.read(tokens, &mut scope);
        file
    }

    /// `retry::layer`; `lib.rs` has no name of its own.
    pub(crate) fn name(&self) -> String {
        if self.module.is_empty() { "lib.rs".to_owned() } else { self.module.join("::") }
    }

    /// Whether this door shows a name of its own folder and does nothing else with it.
    fn only_shows(&self, mention: &Mention, to: &Self) -> bool {
        let is_door = self.path.ends_with("/mod.rs") || self.path.ends_with("/lib.rs");
        let is_used = mention.name.as_ref().is_some_and(|name| self.words.contains(name));
        is_door && mention.public && to.module.starts_with(&self.module) && !is_used
    }

    /// Notes each path in `tokens` and below.
    fn read(&mut self, tokens: &[TokenTree], scope: &mut Vec<String>) {
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let after = &tokens[at + 1..];
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let after_pub = before.is_some_and(|before| is_ident(before, "pub"));
            if let Some(tree) = use_tree(tokens, at) {
                let after_pub_in = before.is_some_and(|b| is_group(b, Delimiter::Parenthesis));
                self.read_use(tree, scope, Vec::new(), after_pub || after_pub_in);
                at += tree.len() + 1;
                continue;
            }
            match token {
                TokenTree::Ident(word) if word == "mod" => {
                    if let [name, TokenTree::Group(body), ..] = after {
                        scope.push(name.to_string());
                        self.read(&tokens_of(body.stream()), scope);
                        scope.pop();
                        at += 2;
                    }
                }
                TokenTree::Ident(first) => {
                    let goes_on =
                        at.checked_sub(2).is_some_and(|at| past_colons(tokens, at).is_some());
                    let mut segments = vec![first.to_string()];
                    while let Some(next) = past_colons(tokens, at + 1)
                        && let TokenTree::Ident(segment) = &tokens[next]
                    {
                        segments.push(segment.to_string());
                        at = next;
                    }
                    self.words.insert(first.to_string());
                    if segments.len() > 1 && !goes_on {
                        let (scope, line) = (scope.clone(), line_of(token));
                        self.paths.push(Mention {
                            scope,
                            segments,
                            line,
                            name: None,
                            public: false,
                        });
                    }
                }
                // `pub(in crate::retry)` imports nothing.
                TokenTree::Group(group) if !after_pub => {
                    self.read(&tokens_of(group.stream()), scope)
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Notes each leaf of a `use` tree; `segments` lead to this branch.
    fn read_use(
        &mut self,
        tree: &[TokenTree],
        scope: &[String],
        mut segments: Vec<String>,
        public: bool,
    ) {
        let Some(line) = tree.first().map(line_of) else {
            return;
        };
        let mut name = None;
        let mut rest = tree.iter();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    name = rest.next().map(ToString::to_string)
                }
                TokenTree::Ident(word) if word == "self" && !segments.is_empty() => {}
                TokenTree::Ident(word) => {
                    name = Some(word.to_string());
                    segments.push(word.to_string());
                }
                TokenTree::Group(group) => {
                    for branch in tokens_of(group.stream()).split(|token| is_punct(token, ',')) {
                        self.read_use(branch, scope, segments.clone(), public);
                    }
                    return;
                }
                _ if is_punct(token, ':') && segments.is_empty() => return, // `use ::http`
                _ => {}
            }
        }
        if tree.last().is_some_and(|last| is_punct(last, '*')) {
            name = None;
        } else if name.is_none() {
            name = segments.last().cloned(); // `use crate::budget::{self}`
        }
        self.paths.push(Mention { scope: scope.to_vec(), segments, line, name, public });
    }
}
