//! A model of the simulator, played through the layers on the paused clock of tokio.

use std::time::Duration;

use abate::BoxError;
use abate_sim::law::Law;
use abate_sim::model::{Arrivals, Group, Model};
use abate_sim::seed_of_process;
use abate_sim::trace::{Happening, What};
use tokio::task::unconstrained;
use tokio::time::Instant;

use crate::differential_calls::Calls;
use crate::differential_clients::{Client, Ended, client};
use crate::differential_server::Server;

/// What happens in `model` from `seed`, in the order in which the simulator has it: at each moment first
/// the server, then the timers of calls by their numbers, then the calls that begin.
///
/// # Errors
///
/// When there is something in the model that cannot be played.
pub(crate) async fn play(model: &Model, seed: u64) -> Result<Vec<Happening>, BoxError> {
    let Model { groups, servers, .. } = model;
    let ([group], [_]) = (groups.as_slice(), servers.as_slice()) else {
        return Err("one group and one server can be played".into());
    };
    if group.network.delay != Law::NOTHING || group.network.loss > 0.0 {
        return Err("no network can be played".into());
    }
    let start = Instant::now();
    let server = Server::new(model, seed, start);
    let play = Play {
        clients: clients(group, seed, &server)?,
        coming: coming(group)?,
        begun: 0,
        calls: Calls::new(),
        server,
        start,
        length: model.length,
    };
    // Else tokio would make timers late to let other tasks run, of which there are none.
    unconstrained(play.run()).await
}

struct Play {
    /// One for each process.
    clients: Vec<Client>,
    /// When calls begin, and in which process.
    coming: Vec<(Duration, usize)>,
    /// How many have.
    begun: u32,
    calls: Calls<Ended>,
    server: Server,
    start: Instant,
    length: Duration,
}

impl Play {
    async fn run(mut self) -> Result<Vec<Happening>, BoxError> {
        while self.start.elapsed() < self.length {
            if let Some(call) = self.server.answered() {
                self.poll(call)?;
            } else if self.server.act() {
                // Whoever is answered by that comes next.
            } else if let Some(call) = self.calls.first_woken() {
                self.poll(call)?;
            } else if !self.begin()? {
                let coming = self.coming.get(self.begun as usize).map(|(at, _)| *at);
                let next = [coming, self.server.next(), Some(self.length)];
                let next = next.into_iter().flatten().min().unwrap_or(self.length);
                self.calls.wait(self.start + next).await;
            }
        }
        Ok(self.server.trace().to_vec())
    }

    fn poll(&mut self, call: u32) -> Result<(), BoxError> {
        if let Some(ending) = self.calls.poll(call) {
            self.server.note(call, What::Ended(ending?));
        }
        Ok(())
    }

    /// Begins the next call if it is time for it.
    fn begin(&mut self) -> Result<bool, BoxError> {
        let number = self.begun;
        let coming = self.coming.get(number as usize);
        let Some((_, process)) = coming.filter(|(at, _)| *at <= self.start.elapsed()) else {
            return Ok(false);
        };
        let client = self.clients.get(*process).ok_or("a call of no process")?;
        self.begun += 1;
        self.server.note(number, What::Began);
        self.calls.begin(number, client(number));
        self.poll(number)?;
        Ok(true)
    }
}

fn clients(group: &Group, seed: u64, server: &Server) -> Result<Vec<Client>, BoxError> {
    let processes = 0..group.clients.div_ceil(group.clients_per_process);
    let clients = processes
        .map(|process| client(&group.conduct, seed_of_process(seed, process), server.clone()));
    clients.collect()
}

fn coming(group: &Group) -> Result<Vec<(Duration, usize)>, BoxError> {
    let process = |client: u32| (client / group.clients_per_process) as usize;
    Ok(match &group.arrivals {
        Arrivals::Batch { at } => (0..group.clients).map(|client| (*at, process(client))).collect(),
        Arrivals::Trace(calls) => {
            calls.iter().map(|(at, client)| (*at, process(*client))).collect()
        }
        other => return Err(format!("{other:?} cannot be played").into()),
    })
}
