//! What does a call pay that succeeds, or that is refused?
//!
//! Also the gate that keeps it so: `--gate` compares with `gate.toml`, `--record` writes it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use abate_benches::overhead::{Scenario, check, markdown, one, record};
use abate_benches::report::write_section;
use clap::Parser;
use tower::BoxError;

/// What a call pays for the layers over its client
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the figures into this file too, from the root of the repository
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Only compare instructions and allocations with the recorded ones; fail if they have grown
    #[arg(long)]
    gate: bool,
    /// Only record instructions and allocations
    #[arg(long, conflicts_with = "gate")]
    record: bool,
    /// Make calls of one scenario (as in `stack/ready`) and say nothing: for a profiler
    #[arg(long, value_name = "SCENARIO")]
    one: Option<Scenario>,
    /// How many calls
    #[arg(long, requires = "one", default_value_t = 1000)]
    calls: u32,
    /// Passed by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let Err(error) = run() else { return ExitCode::SUCCESS };
    let _ = writeln!(io::stderr(), "overhead: {error}");
    ExitCode::FAILURE
}

fn run() -> Result<(), BoxError> {
    let arguments = Arguments::parse();
    if let Some(scenario) = arguments.one {
        return one(scenario, arguments.calls);
    }
    if arguments.gate {
        return check();
    }
    if arguments.record {
        return record();
    }
    let figures = markdown()?;
    writeln!(io::stdout(), "{figures}")?;
    if let Some(file) = arguments.write {
        write_section(&file, "overhead", &figures)?;
    }
    Ok(())
}
