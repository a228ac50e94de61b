//! See [`abate_cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    abate_cli::main()
}
