use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  abate simulate --list
  abate simulate metastable
  abate simulate slow-dependency --policy policies.toml --report storm.html
  abate simulate outage.toml --policy old.toml --policy new.toml --only --map --report compared.html
  abate simulate metastable --json | jq '.policies[] | {name, recovery_s}'

Exit codes:
  0  simulated, whatever became of the policies
  2  bad input or usage";

/// Tries policies against an outage in virtual time, with the decisions that a client ships.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scenario: a file (TOML), or the name of one that comes along.
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["list", "print"])]
    pub(super) scenario: Option<PathBuf>,

    /// Tries the policies of this file as well: of each dependency in it, or else its defaults. Can be
    /// given several times.
    #[arg(long = "policy", value_name = "POLICIES")]
    pub(super) policies: Vec<PathBuf>,

    /// Only this dependency's policies of those files.
    #[arg(long, value_name = "NAME", requires = "policies")]
    pub(super) dependency: Option<String>,

    /// Leaves out the policies that the scenario itself compares.
    #[arg(long, requires = "policies")]
    pub(super) only: bool,

    /// What random numbers start from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Writes a page with plots, which needs no other file.
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Writes a table of counts over time for each policy.
    #[arg(long, value_name = "FOLDER")]
    pub(super) csv: Option<PathBuf>,

    /// Looks as well where the policies recover, over load and length of the trouble; for the page.
    #[arg(long, requires = "report")]
    pub(super) map: bool,

    /// Prints totals as JSON.
    #[arg(long)]
    pub(super) json: bool,

    /// Lists the scenarios that come along.
    #[arg(long, exclusive = true)]
    pub(super) list: bool,

    /// Prints the file of a scenario that comes along, to begin one's own with.
    #[arg(long, value_name = "NAME", exclusive = true)]
    pub(super) print: Option<String>,
}
