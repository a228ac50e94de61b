//! What is given: a scenario, and the policies to try.

use std::path::Path;

use abate_core::config::source::nearest;
use abate_sim::scenario::{Candidate, Scenario, shipped, shipped_names};

use super::args::Args;
use crate::exit::Failure;
use crate::input;

/// The scenario in the file at `path`, or that of this name.
pub(super) fn scenario(path: Option<&Path>) -> Result<Scenario, Failure> {
    let path = path.unwrap_or(Path::new(""));
    let name = path.to_string_lossy();
    // A file of one's own goes before one that comes along.
    let bytes = match shipped(&name) {
        Some(file) if !path.exists() => file.as_bytes().to_vec(),
        _ if is_name(&name) && !path.exists() => file_of(&name)?.as_bytes().to_vec(),
        _ => input::bytes(path)?,
    };
    Scenario::parse(&name, &bytes).map_err(|problems| Failure::Input(problems.to_string()))
}

/// The file of the scenario `name`, which comes along.
pub(super) fn file_of(name: &str) -> Result<&'static str, Failure> {
    shipped(name).ok_or_else(|| {
        let meant = match nearest(name, shipped_names()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("there are {}", shipped_names().collect::<Vec<_>>().join(", ")),
        };
        Failure::Input(format!("{name}: no file, and no scenario that comes along; {meant}"))
    })
}

/// The policies to try: the scenario's own, and those of the files.
pub(super) fn candidates(args: &Args, scenario: &Scenario) -> Result<Vec<Candidate>, Failure> {
    let mut candidates = if args.only { Vec::new() } else { scenario.candidates.clone() };
    for path in &args.policies {
        let policies = input::policies(path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let named = |(name, declared)| Candidate::new(format!("{stem}: {name}"), declared);
        match args.dependency.as_deref() {
            Some(name) => {
                let declared = input::dependency(path, &policies, name)?;
                candidates.push(named((name, declared)));
            }
            None if policies.dependencies().next().is_none() => {
                candidates.push(Candidate::new(stem, policies.defaults()));
            }
            None => candidates.extend(policies.dependencies().map(named)),
        }
    }
    if candidates.is_empty() {
        let problem =
            "there is no policy to try: the scenario compares none; give one with --policy";
        return Err(Failure::Input(problem.to_owned()));
    }
    Ok(candidates)
}

/// Whether this is rather a name than the path of a file.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', '\\', '.'])
}
