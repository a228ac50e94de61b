//! Files that are given on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use abate_core::config::source::nearest;
use abate_core::config::{Declared, Policies};

use crate::exit::Failure;

/// No file that a person writes is larger; a device without end is.
const LARGEST: u64 = 16 << 20;

/// The policies in the file at `path`.
pub(crate) fn policies(path: &Path) -> Result<Policies, Failure> {
    Policies::parse(&path.to_string_lossy(), &bytes(path)?)
        .map_err(|problems| Failure::Input(problems.to_string()))
}

/// What `policies`, of the file at `path`, say for the dependency `name`.
pub(crate) fn dependency<'a>(
    path: &Path,
    policies: &'a Policies,
    name: &str,
) -> Result<&'a Declared, Failure> {
    policies.dependency(name).ok_or_else(|| {
        let known = || policies.dependencies().map(|(name, _)| name);
        let meant = match nearest(name, known()) {
            Some(nearest) => format!("; did you mean `{nearest}`?"),
            None if known().next().is_none() => "; it has no section for any".to_owned(),
            None => format!("; it has {}", known().collect::<Vec<_>>().join(", ")),
        };
        let file = path.display();
        Failure::Input(format!("{file}: there is no dependency `{name}` in it{meant}"))
    })
}

/// What is in the file at `path`.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let refuse = |why: &str| Failure::Input(format!("{}: {why}", path.display()));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    match read.map_err(|error| (error.kind(), error)) {
        Ok(_) if bytes.len() as u64 > LARGEST => Err(refuse("is larger than 16 MiB")),
        Ok(_) => Ok(bytes),
        Err((io::ErrorKind::NotFound, _)) => Err(refuse("there is no such file")),
        Err((io::ErrorKind::IsADirectory, _)) => Err(refuse("is a folder; expected a file")),
        Err((_, error)) => Err(refuse(&format!("cannot be read: {error}"))),
    }
}
