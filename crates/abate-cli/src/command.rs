use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{self, Failure, Outcome};
use crate::terminal;
use crate::{explain, simulate, verify};

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  a figure was missed
  2  bad input or usage";

/// What a retry policy does to callers and to their dependency, before production finds out.
#[derive(Debug, Parser)]
#[command(name = "abate", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Each has its folder: its arguments and what it does.
#[derive(Debug, Subcommand)]
enum Command {
    Explain(explain::Args),
    Simulate(simulate::Args),
    Verify(verify::Args),
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let result = run(&Cli::parse().command);
    if let Err(failure) = &result
        && !failure.is_broken_pipe()
    {
        // Where even that cannot be written, the exit code still tells.
        let _unheard = complain(failure);
    }
    exit::code(&result)
}

fn run(command: &Command) -> Result<Outcome, Failure> {
    let mut out = anstream::stdout().lock();
    let outcome = match command {
        Command::Explain(args) => explain::run(args, &mut out),
        Command::Simulate(args) => simulate::run(args, &mut out),
        Command::Verify(args) => verify::run(args, &mut out),
    }?;
    out.flush()?;
    Ok(outcome)
}

fn complain(failure: &Failure) -> std::io::Result<()> {
    let mut err = anstream::stderr().lock();
    let style = terminal::ERROR;
    for problem in failure.to_string().lines() {
        writeln!(err, "{style}error:{style:#} {problem}")?;
    }
    Ok(())
}
