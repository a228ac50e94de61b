//! A crate of a user, outside the workspace, is built and tested as its user would do it.

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

const STOCK: &str = include_str!("user_crate/tests/stock.rs");

#[test]
fn a_crate_of_a_user_tests_its_own_code_with_abate_alone() -> io::Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("user_crate");
    for folder in ["src", "tests"] {
        fs::create_dir_all(home.join(folder))?;
    }
    for file in ["src/lib.rs", "tests/stock.rs"] {
        fs::copy(tests.join("user_crate").join(file), home.join(file))?;
    }
    // The versions that are here already: nothing has to be fetched.
    fs::copy(tests.join("../Cargo.lock"), home.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(tests.join("user_crate/Cargo.toml"))?;
    let ours = tests.join("../crates/abate").canonicalize()?;
    let moved = manifest.replace("../../crates/abate", &ours.display().to_string());
    assert_ne!(moved, manifest);
    fs::write(home.join("Cargo.toml"), moved)?;

    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--offline", "--test", "stock", "--target-dir", "target"])
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .current_dir(&home)
        .output()?;
    let (told, why) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{why}");
    assert!(told.contains("test result: ok. 1 passed"), "{told}\n{why}");
    Ok(())
}

#[test]
fn the_readme_shows_that_very_test_and_it_is_short() {
    assert!(include_str!("../README.md").contains(STOCK));
    assert!(STOCK.lines().count() <= 12);
}
