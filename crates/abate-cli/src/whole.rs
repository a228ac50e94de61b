//! Files that are there whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to the file at `path`, which is the old one until it is the whole new one: whoever
/// reads it meanwhile, and whoever interrupts the command, finds no half of it.
///
/// What is no file, such as a pipe, is written to as it is.
///
/// # Errors
///
/// Those of the file system; the old file is then left as it was.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Behind a link, the file that it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|what| !what.is_file()) {
        return fs::write(path, bytes);
    }
    // In the same folder: a file is moved in one step only within its file system.
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new =
        like_other_files(&mut tempfile::Builder::new()).prefix(".abate-").tempfile_in(folder)?;
    new.write_all(bytes)?;
    if let Ok(old) = fs::metadata(path) {
        new.as_file().set_permissions(old.permissions())?;
    }
    new.persist(path)?;
    Ok(())
}

/// Temporary files are for their owner's eyes only; this one will not be temporary.
#[cfg(unix)]
fn like_other_files<'a, 'b>(
    builder: &'a mut tempfile::Builder<'b, 'b>,
) -> &'a mut tempfile::Builder<'b, 'b> {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(0o666)) // less the umask
}

#[cfg(not(unix))]
fn like_other_files<'a, 'b>(
    builder: &'a mut tempfile::Builder<'b, 'b>,
) -> &'a mut tempfile::Builder<'b, 'b> {
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name =
            |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        fs::read_dir(folder).unwrap().map(name).collect()
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        for text in ["the first, which is longer", "the second"] {
            write_whole(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["report.html"]);
        }
    }

    #[test]
    fn where_it_cannot_be_written_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_whole(&folder.path().join("none/report.html"), b"x").is_err());
        assert!(write_whole(folder.path(), b"x").is_err());
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn who_reads_the_old_file_meanwhile_reads_all_of_it() {
        use std::io::Read;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_whole(&path, b"old").unwrap();
        let mut reader = fs::File::open(&path).unwrap();
        write_whole(&path, b"new").unwrap();
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "old");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_as_they_were() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("report.html"), folder.path().join("link"));
        write_whole(&path, b"old").unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(mode(&path) & 0o777, 0o640);
    }
}
