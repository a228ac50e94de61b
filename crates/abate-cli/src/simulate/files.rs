//! What is written to files.

use std::fs;
use std::path::Path;

use abate_sim::record::Run;
use abate_sim::report;

use crate::exit::Failure;
use crate::whole::write_whole;

/// Writes a file whole, or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, bytes).map_err(|error| refused(path, &error))
}

/// Writes a table for each of `runs` into `folder`, which is made if need be.
pub(super) fn write_tables(folder: &Path, runs: &[Run]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
    for (number, run) in runs.iter().enumerate() {
        let path = folder.join(format!("{}-{}.csv", number + 1, plain(&run.name)));
        write(&path, report::csv(run).as_bytes())?;
    }
    Ok(())
}

/// A name that every file system takes.
fn plain(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!("{}: cannot be written: {error}", path.display()))
}
