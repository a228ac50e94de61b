//! Where a policy recovers and where it does not: one scenario under more or less load, with longer and
//! shorter trouble.

use std::time::Duration;

use crate::Crew;
use crate::recovery::{Recovery, recovery};
use crate::report::{Grid, Map};
use crate::scenario::{Candidate, Scenario};

/// How busy the dependency is kept, as a share of what it can answer.
const LOADS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// How long the trouble lasts, as a multiple of what the scenario says.
const OUTAGES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// The runs that a survey of so many policies makes.
#[must_use]
pub const fn runs(policies: usize) -> u64 {
    (LOADS.len() * OUTAGES.len() * policies) as u64
}

/// Runs `scenario` for each of `candidates` at several loads and with several lengths of its trouble.
///
/// `None` for a scenario without a rate of calls, a number of workers or trouble: there is nothing to vary.
#[must_use]
pub fn survey(
    scenario: &Scenario,
    candidates: &[Candidate],
    seed: u64,
    crew: &Crew<'_>,
) -> Option<Map> {
    let (load, trouble) = scenario.load().zip(scenario.trouble())?;
    let cells = LOADS.len() * OUTAGES.len();
    let recovered = crew.each(runs(candidates.len()), |number| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let (outage, share) = (number % cells / LOADS.len(), number % LOADS.len());
        let scaled = scenario.scaled(LOADS.get(share)? / load, *OUTAGES.get(outage)?);
        let mut model = scaled.model(&candidates.get(number / cells)?.conduct);
        model.keeps_times = false;
        match recovery(&crate::run(&model, seed)) {
            Recovery::After(time) => Some(time),
            _ => None,
        }
    });
    let grids = candidates.iter().zip(recovered.chunks(cells)).map(|(candidate, cells)| Grid {
        name: candidate.name.clone(),
        recovery: cells.chunks(LOADS.len()).map(<[Option<Duration>]>::to_vec).collect(),
    });
    Some(Map {
        loads: LOADS.to_vec(),
        outages: OUTAGES.iter().map(|times| trouble.mul_f64(*times)).collect(),
        policies: grids.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_try_recovers_where_retries_do_not() {
        // A tenth of the scenario that ships.
        let file = crate::scenario::shipped("metastable").unwrap();
        let file = file.replace("workers = 30", "workers = 3").replace("= 280", "= 28");
        let scenario = Scenario::parse("metastable.toml", file.as_bytes()).unwrap();
        let candidates = &scenario.candidates[..2];
        let after_run = || {};
        let map = survey(&scenario, candidates, 1, &Crew::new(&after_run)).unwrap();
        assert_eq!(map.policies.len(), 2);
        let cell =
            |policy: usize, outage: usize, load: usize| map.policies[policy].recovery[outage][load];
        // Ten seconds at half the load: one try comes through, three tries keep the queue full.
        assert!(cell(0, 2, 0).is_some());
        assert_eq!(cell(1, 2, 4), None);
        assert_eq!(map.outages[2], Duration::from_secs(10));
    }

    #[test]
    fn without_a_rate_there_is_nothing_to_survey() {
        let file = crate::scenario::shipped("herd").unwrap();
        let scenario = Scenario::parse("herd.toml", file.as_bytes()).unwrap();
        let after_run = || {};
        assert!(survey(&scenario, &scenario.candidates, 1, &Crew::new(&after_run)).is_none());
    }
}
