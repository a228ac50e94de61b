//! The house keeps its own rules. Each rule is a check over the sources, and is itself tested on code that breaks it.

mod house_code;
mod house_contract;
mod house_imports;
mod house_layout;
mod house_source;

use house_code::{clock, leftovers, orderings};
use house_contract::contract;
use house_layout::{circles, ladder, middlewares, sizes};
use house_source::{Problems, Source};
use std::io;

type Check = fn(&[Source]) -> Problems;

#[test]
fn core_modules_import_only_from_rungs_above_their_own() -> io::Result<()> {
    holds(ladder)
}

#[test]
fn modules_of_a_crate_form_no_circle() -> io::Result<()> {
    holds(circles)
}

#[test]
fn middlewares_never_import_each_other() -> io::Result<()> {
    holds(middlewares)
}

#[test]
fn files_are_short_and_folders_have_a_mod_rs() -> io::Result<()> {
    holds(sizes)
}

#[test]
fn nothing_is_left_undone_ignored_or_allowed_without_a_reason() -> io::Result<()> {
    holds(leftovers)
}

#[test]
fn every_atomic_ordering_says_why() -> io::Result<()> {
    holds(orderings)
}

#[test]
fn one_file_reads_the_clock() -> io::Result<()> {
    holds(clock)
}

#[test]
fn the_contract_names_a_test_in_each_cell_and_leaves_none_out() -> io::Result<()> {
    let with_document = |sources: &[Source]| {
        let document = house_contract::document().map(|it| [sources, &[it]].concat());
        document.map_or_else(|error| vec![error.to_string()], |sources| contract(&sources))
    };
    holds(with_document)
}

fn holds(check: Check) -> io::Result<()> {
    let sources = Source::workspace()?;
    for root in ["crates/abate/src/lib.rs", "crates/abate-core/src/lib.rs"] {
        assert!(sources.iter().any(|source| source.path == root), "did not find {root}");
    }
    let problems = check(&sources);
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
    Ok(())
}

#[test]
fn an_import_down_the_ladder_is_caught() {
    caught(
        ladder,
        &[core("ratio", "use crate::policy::Policy;"), core("policy", "pub struct Policy;")],
        "ratio.rs:1: `ratio` (rung 0) imports `policy` (rung 6)",
    );
    caught(
        ladder,
        &[core("budget", "\nfn f() { let b = super::breaker::new(); }"), core("breaker", "")],
        "budget.rs:2: `budget` (rung 4) imports `breaker` (rung 4)",
    );
    caught(
        ladder,
        &[
            core("lib", "pub use session::Session;"),
            core("session/mod", "mod life; pub use life::Session;"),
            core("session/life", "pub struct Session;"),
            core("policy", "use {crate::{outcome::Fault, Session as S}};"),
            core("outcome", "pub struct Fault;"),
        ],
        "policy.rs:1: `policy` (rung 6) imports `session` (rung 7)",
    );
    caught(
        ladder,
        &[core("lib", "pub struct Common;"), core("ratio", "use crate::Common;")],
        "ratio.rs:1: imports from lib.rs",
    );
}

#[test]
fn a_core_module_without_a_rung_is_caught() {
    caught(ladder, &[core("helpers", "")], "`helpers` has no rung: give it one in LADDER");
}

#[test]
fn imports_up_the_ladder_of_others_and_of_tests_are_fine() {
    passes(
        ladder,
        &[
            core("lib", "pub mod config; pub use session::Session; use config::Config;"),
            core("config", "use crate::policy::Policy; use ::session::X; use http::policy::Y;"),
            core("policy", "pub(in crate::config) struct Policy; // use crate::config::Config;"),
            core("session/mod", "mod state; use self::state::State; #[cfg(test)] mod cases;"),
            core("session/state", "use super::super::policy::Policy; pub struct State;"),
            core("session/cases", "use crate::config::Config;"),
            core("ratio", "#[cfg(test)] mod tests { use crate::config::Config; }"),
        ],
    );
}

#[test]
fn a_circle_is_caught_and_told_step_by_step() {
    caught(
        circles,
        &[
            layers("a", "use crate::b::B; pub struct A;"),
            layers("b", "pub struct B; fn f() -> crate::c::C { crate::c::C }"),
            layers("c", "mod inner { use super::super::a::A; } pub struct C;"),
        ],
        "crates/abate: a -> b -> c -> a",
    );
    caught(
        circles,
        &[
            layers("retry/mod", "mod layer; use layer::Layer; pub struct Retry(Layer);"),
            layers("retry/layer", "use super::Retry; pub struct Layer;"),
        ],
        "retry -> retry::layer -> retry",
    );
    caught(
        circles,
        &[
            layers("retry/service", "use crate::observe::event::Event;"),
            layers("retry/report", "pub struct Report;"),
            layers("observe/event", "pub struct Event;"),
            layers("observe/trace", "use crate::retry::report::Report;"),
        ],
        "observe -> retry -> observe",
    );
}

#[test]
fn a_door_that_only_shows_its_own_makes_no_circle() {
    passes(
        circles,
        &[
            layers("lib", "mod retry; pub use retry::{Retry, RetryLayer};"),
            layers(
                "retry/mod",
                "mod layer; mod service; pub use {layer::RetryLayer, service::Retry};",
            ),
            layers("retry/layer", "use super::Retry; pub struct RetryLayer;"),
            layers("retry/service", "pub struct Retry; #[cfg(test)] mod tests;"),
            layers("retry/service/tests", "use crate::RetryLayer;"),
        ],
    );
}

#[test]
fn a_middleware_that_imports_another_is_caught() {
    let others = [
        layers("lib", "pub use retry::Retry;"),
        layers("retry/mod", "mod layer; mod service; pub use service::Retry;"),
        layers("retry/layer", ""),
        layers("retry/service", "pub struct Retry;"),
        layers("breaker/layer", ""),
        layers("stack/layer", "use crate::retry::Retry;"),
        layers("stack/service", ""),
    ];
    let with = |text| [&others[..], &[layers("breaker/service", text)]].concat();
    passes(middlewares, &with("use tower::retry::Retry;"));
    caught(middlewares, &with("use crate::Retry;"), "`breaker` imports middleware `retry`");
    caught(
        middlewares,
        &with("use crate::stack::layer::X;"),
        "`breaker` imports middleware `stack`",
    );
}

#[test]
fn long_files_long_inline_tests_and_twins_of_folders_are_caught() {
    caught(sizes, &[layers("long", &"\n".repeat(401))], "long.rs: 401 lines");
    passes(sizes, &[layers("long", &"\n".repeat(400))]);
    let tests = |lines| format!("#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(lines));
    caught(sizes, &[layers("a", &tests(120))], "`mod tests` has 121 lines");
    passes(sizes, &[layers("a", &tests(119))]);
    caught(sizes, &[layers("a", ""), layers("a/b", "")], "make it crates/abate/src/a/mod.rs");
}

#[test]
fn leftovers_are_caught() {
    for (text, message) in [
        ("fn f() {\n todo!() }", "lib.rs:2: `todo!`"),
        ("fn f() { unimplemented![] }", "`unimplemented!`"),
        ("#[test] #[ignore = \"slow\"] fn f() {}", "`#[ignore]`"),
        ("#[cfg_attr(miri, ignore)] fn f() {}", "`#[ignore]`"),
        ("#![allow(dead_code)]", "bare `#[allow]`"),
        ("#[cfg(test)] mod tests { #[allow(dead_code)] fn f() {} }", "bare `#[allow]`"),
        ("#[cfg_attr(miri, allow(dead_code))] fn f() {}", "bare `#[allow]`"),
        ("/// ```rust,ignore\n/// f();\n/// ```\nfn f() {}", "marked `ignore`"),
        ("fn f( {", "is not Rust"),
    ] {
        caught(leftovers, &[layers("lib", text)], message);
    }
    let fine = "/// `todo!()`\n#[expect(dead_code, reason = \"…\")] fn f() { todo != 1; \"todo!()\" } // #[ignore]";
    passes(leftovers, &[layers("lib", fine)]);
}

#[test]
fn an_ordering_without_its_why_is_caught() {
    let caught =
        |text: &str| caught(orderings, &[layers("a", text)], "an `Ordering` without its why");
    caught("fn f() {\n a.load(Ordering::Relaxed);\n}");
    caught("/// Docs are for others.\nfn f() { a.load(atomic::Ordering::SeqCst, \"http://\"); }");
    caught("// Far away.\n\n\n\nfn f() {\n a.load(AtomicOrdering::Acquire);\n}");
    caught("fn f(a: &A) -> impl Fn() + use<'_> {\n move || a.load(Ordering::SeqCst)\n}");
    caught("// What for?\nuse x::Y;\n\n\nfn f() { a.load(Ordering::SeqCst) }");
    caught(
        "use std::sync::atomic::{AtomicU8, Ordering::{self, Relaxed}};\n\n\nfn f() { a.load(Relaxed); }",
    );
    let passes = |text: &str| passes(orderings, &[layers("a", text)]);
    passes("fn f() {\n a.load(Ordering::Relaxed); // a counter, nothing hangs on it\n}");
    passes("fn f() {\n // Why.\n a\n .swap(\n 1,\n 2,\n 3,\n Ordering::AcqRel,\n );\n}");
    passes(
        "fn f() { a.cmp(b) == Ordering::Less; }\n#[cfg(test)]\nmod tests { fn f() { a.load(Ordering::Relaxed); } }",
    );
}

#[test]
fn a_second_reader_of_the_clock_is_caught() {
    let now = "fn f() { tokio::time::Instant::now(); }";
    caught(clock, &[layers("retry", now)], "retry.rs:1: reads the clock");
    caught(clock, &[core("budget", "fn f() { g(|| SystemTime::now()) }")], "reads the clock");
    passes(
        clock,
        &[layers("clock", now), layers("r/mod", "#[cfg(test)] mod tests;"), layers("r/tests", now)],
    );
    passes(clock, &[layers("retry", &format!("#[cfg(test)] mod tests {{ {now} }}"))]);
}

#[test]
fn a_contract_with_a_gap_is_caught() {
    let cells = "abate_tests::cells! { [a: A, b: B] law: x::law; }";
    let tests =
        "#[test] fn one() {} mod m { #[tokio::test(start_paused = true)] async fn two() {} }";
    let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let with = |text: &str| {
        [
            file("docs/contract.md", text),
            file("tests/contract.rs", cells),
            file("tests/foreign_one.rs", tests),
            file("tests/retrying.rs", "#[test] fn of_another_file() {}"),
        ]
    };
    let head = "| law | a | b |\n|---|---|---|\n";
    let whole = format!(
        "{head}| law | `law::a` | `law::b` |\n\n| x | y | z |\n|---|---|---|\n\
         | w | `foreign_one::one` | `foreign_one::two` |\n"
    );
    passes(contract, &with(&whole));
    for (from, to, message) in [
        ("`law::a`", "", ":3: `` is no test"),
        ("`law::a`", "soon", ":3: `soon` is no test"),
        ("`law::a`", "`law::b`", ":3: `law::b` stands twice"),
        ("`law::a`", "`law::b`", "has no cell for the test `law::a`"),
        ("`law::b`", "`law::c`", "names `law::c`, and there is no such test"),
        ("| `foreign_one::two`", "", ":7: 2 cells, not 3"),
        ("| `foreign_one::two`", "", "has no cell for the test `foreign_one::two`"),
    ] {
        caught(contract, &with(&whole.replace(from, to)), message);
    }
    caught(contract, &[file("tests/contract.rs", cells)], "docs/contract.md is missing");
}

fn core(module: &str, text: &str) -> Source {
    Source { path: format!("crates/abate-core/src/{module}.rs"), text: text.to_owned() }
}

fn layers(module: &str, text: &str) -> Source {
    Source { path: format!("crates/abate/src/{module}.rs"), text: text.to_owned() }
}

#[track_caller]
fn caught(check: Check, sources: &[Source], message: &str) {
    let problems = check(sources);
    assert!(problems.iter().any(|problem| problem.contains(message)), "not among {problems:#?}");
}

#[track_caller]
fn passes(check: Check, sources: &[Source]) {
    let problems = check(sources);
    assert!(problems.is_empty(), "{problems:#?}");
}
