//! `abate explain`: what a policy means for a caller, for the dependency, and for those beyond it.

use std::io::Write;
use std::path::PathBuf;

use abate_core::config::{Declared, Policies};

use crate::exit::{Failure, Outcome};
use crate::input;

mod facts;
mod json;
mod load;
mod page;
mod schedule;
mod time;
mod warnings;

use self::facts::Facts;

const EXAMPLES: &str = "\
Examples:
  abate explain policies.toml
  abate explain policies.toml --dependency payments
  abate explain policies.toml --layers 5
  abate explain policies.toml --json | jq '.policies[].warnings[].key'

Exit codes:
  0  explained, with or without warnings
  2  bad input or usage";

/// What the policies of a file do: waits, the time a caller is held, load, and warnings.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file of policies (TOML).
    #[arg(value_name = "POLICIES")]
    file: PathBuf,

    /// The dependency to explain; all that have a section unless given, or else the defaults.
    #[arg(long, value_name = "NAME")]
    dependency: Option<String>,

    /// How many services in a row retry with this policy.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    layers: u32,

    /// Prints JSON: times in seconds, loads as factors.
    #[arg(long)]
    json: bool,
}

/// Explains what `args` ask for.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome, Failure> {
    let policies = input::policies(&args.file)?;
    let facts: Vec<_> = chosen(&policies, args)?
        .into_iter()
        .map(|(name, declared)| Facts::new(name, declared, args.layers))
        .collect();
    if args.json {
        writeln!(out, "{:#}", json::document(&args.file, &facts))?;
    } else {
        for (n, facts) in facts.iter().enumerate() {
            if n > 0 {
                writeln!(out)?;
            }
            page::print(facts, out)?;
        }
    }
    Ok(Outcome::Fine)
}

/// The policies to explain; those without a name are the defaults.
fn chosen<'a>(
    policies: &'a Policies,
    args: &'a Args,
) -> Result<Vec<(Option<&'a str>, &'a Declared)>, Failure> {
    if let Some(name) = args.dependency.as_deref() {
        let declared = input::dependency(&args.file, policies, name)?;
        return Ok(vec![(Some(name), declared)]);
    }
    let all: Vec<_> = policies.dependencies().map(|(name, it)| (Some(name), it)).collect();
    Ok(if all.is_empty() { vec![(None, policies.defaults())] } else { all })
}
