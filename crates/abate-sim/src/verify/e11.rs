//! E11, layers that each retry: what one call becomes at the bottom of them.
//!
//! A service that calls a service, and so on, of which each tries as often as the one above: `attempts^layers`
//! requests reach the last for each call, if it fails. Exact, since nothing here is by chance.

use std::time::Duration;

use abate_core::backoff::Backoff;

use super::experiment::Experiment;
use super::line::Line;
use super::parts::{open, plain, s};
use crate::Crew;
use crate::law::Law;
use crate::model::{Arrivals, Group, Model, Server};

pub(super) const EXPERIMENT: Experiment =
    Experiment { id: "E11", title: "retries of layers multiply", runs: CASES.len() as u64, run };

/// Layers, attempts of each, and what becomes of a call.
const CASES: [(usize, u32, f64); 6] =
    [(2, 3, 9.0), (3, 3, 27.0), (4, 3, 81.0), (5, 3, 243.0), (3, 4, 64.0), (3, 10, 1000.0)];
const CALLS: u32 = 10;

fn run(crew: &Crew<'_>) -> Vec<Line> {
    let runs = crew.each(CASES.len() as u64, |case| {
        CASES.get(case as usize).map(|case| (*case, requests_at_the_bottom(case.0, case.1)))
    });
    let mut lines: Vec<_> = runs
        .into_iter()
        .flatten()
        .map(|((layers, attempts, expected), got)| {
            Line::near(format!("{layers} layers of {attempts} attempts"), got, expected, 0.0)
        })
        .collect();
    lines.push(Line::later("one layer retries: any layers", "comes with the one-layer rule"));
    lines.push(Line::later("ours with a store", "comes with the fleet budget"));
    lines
}

/// For each call at the top.
fn requests_at_the_bottom(layers: usize, attempts: u32) -> f64 {
    let groups = (0..layers).map(|layer| {
        let top = layer == 0;
        Group {
            clients: if top { CALLS } else { 1 },
            arrivals: if top { Arrivals::Batch { at: Duration::ZERO } } else { Arrivals::Never },
            server: layer,
            onward: Some(layer + 1).filter(|below| *below < layers),
            counts: top,
            ..open(0.0, plain(attempts, None, Backoff::NONE))
        }
    });
    let servers = (1..=layers).map(|below| {
        let mut server = Server::new(Law::NOTHING);
        server.error_rate = if below == layers { 1.0 } else { 0.0 };
        server
    });
    let model = Model {
        length: s(1),
        step: s(1),
        groups: groups.collect(),
        servers: servers.collect(),
        troubles: vec![],
        watched: layers.saturating_sub(1),
        keeps_times: false,
    };
    crate::run(&model, 0).amplification()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_layers_of_three_make_nine() {
        assert_eq!(requests_at_the_bottom(1, 3), 3.0);
        assert_eq!(requests_at_the_bottom(2, 3), 9.0);
    }
}
