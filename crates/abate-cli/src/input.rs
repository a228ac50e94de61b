//! Files that are given on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use abate_core::config::Policies;

use crate::exit::Failure;

/// No file that a person writes is larger; a device without end is.
const LARGEST: u64 = 16 << 20;

/// The policies in the file at `path`.
pub(crate) fn policies(path: &Path) -> Result<Policies, Failure> {
    Policies::parse(&path.to_string_lossy(), &bytes(path)?)
        .map_err(|problems| Failure::Input(problems.to_string()))
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
