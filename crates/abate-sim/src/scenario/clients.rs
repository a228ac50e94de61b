//! `[[clients]]`.

use abate_core::config::Declared;
use abate_core::config::source::{Table, Value};

use super::laws::{law, rate};
use super::servers::find;
use crate::law::Law;
use crate::model::{Arrivals, Conduct, Group, Guarding, Network, Payment};

/// More clients than this no run has room for.
const MOST_CLIENTS: u32 = 10_000_000;

/// Groups of clients, in the order of the file, and whether their policy is their own, and not one of
/// those that are compared. `servers` are the names of the servers.
pub(super) fn read(root: &mut Table<'_>, servers: &[String]) -> Vec<(Group, bool)> {
    let mut tables = root.take("clients").required().tables();
    let named = tables.iter_mut().map(|table| {
        let name = table.take("name").required();
        name.text().unwrap_or_default().to_owned()
    });
    let names: Vec<String> = named.collect();
    let groups = tables.into_iter().enumerate();
    groups.map(|(number, table)| group(table, number, &names, servers)).collect()
}

fn group(
    mut table: Table<'_>,
    number: usize,
    names: &[String],
    servers: &[String],
) -> (Group, bool) {
    let own = table.take("policy").table().map(Declared::read);
    let is_own = own.is_some();
    let server = find(servers, &table.take("server")).unwrap_or(0);
    let clients = table.take("count").integer(1..=MOST_CLIENTS).unwrap_or(1);
    let per_process = table.take("per_process").integer(1..=MOST_CLIENTS).unwrap_or(1);
    let calls = table.take("calls");
    let is_called = !calls.is_present();
    let onward = onward(&table.take("onward"), number, names);
    let group = Group {
        clients,
        clients_per_process: per_process,
        arrivals: arrivals(&calls).unwrap_or(Arrivals::Never),
        conduct: conduct(&own.unwrap_or_default()),
        server,
        network: network(&mut table),
        onward,
        counts: table.take("counts").flag().unwrap_or(!is_called),
        cancels: table.take("cancels").flag().unwrap_or(false),
    };
    (group, is_own)
}

/// How a stack calls by a policy of a file.
pub(super) fn conduct(declared: &Declared) -> Conduct {
    let mut conduct = Conduct::stack(declared.policy().clone());
    if !declared.has_breaker() {
        conduct.breaker = Guarding::Off;
    }
    if !declared.has_budget() {
        conduct.payment = Payment::Free;
    }
    conduct
}

/// Only to a group that stands below, so that no request calls for itself.
fn onward(value: &Value<'_>, number: usize, names: &[String]) -> Option<usize> {
    let below: Vec<_> =
        names.iter().map(String::as_str).zip(0..).filter(|(_, place)| *place > number).collect();
    if value.is_present() && below.is_empty() {
        value.problem("there are no clients below these that the server could call as");
        return None;
    }
    value.word(&below)
}

fn arrivals(value: &Value<'_>) -> Option<Arrivals> {
    if !value.is_present() {
        return None;
    }
    let mut table = value.table()?;
    let [poisson, even, serial, batch] =
        ["poisson", "even", "serial", "batch"].map(|key| table.take(key));
    let of = |value: &Value<'_>| if value.is_present() { rate(value) } else { None };
    let think = if serial.is_present() { law(&serial) } else { None };
    if think.is_some_and(|think| think.mean().is_zero()) {
        serial.problem(
            "must be longer than nothing, or time would stand still where answers come at once",
        );
    }
    let arrivals = [
        of(&poisson).map(Arrivals::Poisson),
        of(&even).map(Arrivals::Even),
        think.map(|think| Arrivals::Serial { think }),
        batch.duration().map(|at| Arrivals::Batch { at }),
    ];
    match [poisson, even, serial, batch].iter().filter(|value| value.is_present()).count() {
        1 => arrivals.into_iter().flatten().next(),
        _ => {
            value.problem("expected one kind: `poisson`, `even`, `serial` or `batch`");
            None
        }
    }
}

fn network(table: &mut Table<'_>) -> Network {
    let Some(mut network) = table.take("network").table() else { return Network::INSTANT };
    let delay = network.take("delay");
    let delay = if delay.is_present() { law(&delay) } else { None };
    let loss = network.take("loss").ratio().map_or(0.0, |loss| loss.as_f64());
    Network { delay: delay.unwrap_or(Law::NOTHING), loss }
}
