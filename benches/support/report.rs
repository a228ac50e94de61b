//! Where the figures go: a section of docs/benchmarks.md each, with the machine they are from.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const HEAD: &str =
    "# Benchmarks\n\nWritten by the benches themselves; each rewrites its own section.\n";

/// Replaces what stands between `<!-- name -->` and `<!-- /name -->`; appends both where they are
/// missing. A relative path starts at the root of the repository, wherever cargo runs the bench.
///
/// # Errors
///
/// When the file cannot be read or written, or has only one of the two markers.
pub fn write_section(path: &Path, name: &str, markdown: &str) -> io::Result<()> {
    let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let old = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => HEAD.to_owned(),
        read => read?,
    };
    fs::write(path, with_section(&old, name, markdown)?)
}

fn with_section(old: &str, name: &str, markdown: &str) -> io::Result<String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let section = format!("{open}\n{}\n{close}", markdown.trim());
    match (old.split_once(&open), old.split_once(&close)) {
        (None, None) => Ok(format!("{}\n\n{section}\n", old.trim_end())),
        (Some((before, rest)), Some((_, after))) if rest.contains(&close) => {
            Ok(format!("{before}{section}{after}"))
        }
        _ => Err(io::Error::other(format!("`{open}` and `{close}` do not match"))),
    }
}

/// The processor, its cores, the system and the compiler, in one line.
#[must_use]
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (cpu, system) = (cpu(), system());
    format!("{cpu}, {cores} cores, {system} {}, {}", std::env::consts::ARCH, compiler())
}

/// What `rustc --version` names first: `rustc 1.95.0`.
#[must_use]
pub fn compiler() -> String {
    let version = said_by("rustc", &["--version"]).unwrap_or_default();
    let words: Vec<_> = version.split_whitespace().take(2).collect();
    if words.is_empty() { "an unknown rustc".to_owned() } else { words.join(" ") }
}

/// Today in UTC: `2026-01-31`.
#[must_use]
pub fn today() -> String {
    said_by("date", &["-u", "+%F"]).unwrap_or_else(|| "an unknown day".to_owned())
}

/// The version of a package that the benches are built with.
#[must_use]
pub fn version_of(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = LOCK.split_once(&entry).and_then(|(_, rest)| rest.split_once('"'));
    version.map_or("?", |(version, _)| version)
}

fn cpu() -> String {
    value_in("/proc/cpuinfo", "model name", ':')
        .or_else(|| said_by("sysctl", &["-n", "machdep.cpu.brand_string"]))
        .unwrap_or_else(|| "an unknown processor".to_owned())
}

fn system() -> String {
    value_in("/etc/os-release", "PRETTY_NAME", '=')
        .unwrap_or_else(|| std::env::consts::OS.to_owned())
}

/// The value of the first line `key<separator>value` of a file.
fn value_in(path: &str, key: &str, separator: char) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    let (_, value) = line.split_once(separator)?;
    Some(value.trim().trim_matches('"').to_owned())
}

fn said_by(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::with_section;

    #[test]
    fn a_section_is_appended_once_and_then_replaced_alone() {
        let one = with_section("# Title\n", "one", "1").unwrap();
        let both = with_section(&one, "two", "2").unwrap();
        let again = with_section(&both, "one", "new").unwrap();
        assert_eq!(
            again,
            "# Title\n\n<!-- one -->\nnew\n<!-- /one -->\n\n<!-- two -->\n2\n<!-- /two -->\n"
        );
    }

    #[test]
    fn half_a_section_is_left_alone() {
        assert!(with_section("<!-- one -->", "one", "1").is_err());
        assert!(with_section("<!-- /one --><!-- one -->", "one", "1").is_err());
    }
}
