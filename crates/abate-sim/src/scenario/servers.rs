//! `[[server]]` and `[[trouble]]`.

use std::time::Duration;

use abate_core::config::source::{Table, Value};

use super::laws::law;
use crate::law::Law;
use crate::model::{Fault, Server, Trouble};

/// More workers than this are no limit; leave the key out.
const MOST_WORKERS: u32 = 10_000_000;

/// The names of the servers, and they, in the order of the file.
pub(super) fn read(root: &mut Table<'_>) -> (Vec<String>, Vec<Server>) {
    let tables = root.take("server").required().tables();
    let mut names: Vec<String> = Vec::new();
    let mut servers = Vec::new();
    for mut table in tables {
        let name = table.take("name").required();
        let text = name.text().unwrap_or_default();
        if names.iter().any(|known| known == text) {
            name.problem("another server has this name");
        }
        names.push(text.to_owned());
        servers.push(server(&mut table));
    }
    (names, servers)
}

/// The number of the server that `value` names; the first, where there is only one and none is named.
pub(super) fn find(names: &[String], value: &Value<'_>) -> Option<usize> {
    if !value.is_present() {
        return (!names.is_empty()).then_some(0);
    }
    let names: Vec<_> = names.iter().map(String::as_str).zip(0..).collect();
    value.word(&names)
}

/// What goes wrong, in the order of the file.
pub(super) fn read_troubles(root: &mut Table<'_>, names: &[String]) -> Vec<Trouble> {
    let tables = root.take("trouble").tables().into_iter();
    tables.filter_map(|mut table| trouble(&mut table, names)).collect()
}

fn server(table: &mut Table<'_>) -> Server {
    let service = law(&table.take("service").required()).unwrap_or(Law::NOTHING);
    let mut server = Server::new(service);
    server.workers = table.take("workers").integer(1..=MOST_WORKERS);
    server.failing = law_if(&table.take("failing"));
    server.slower_by = table.take("slower_by").duration().unwrap_or_default();
    server.queue = table.take("queue").integer(0..=u32::MAX);
    server.last_first = table.take("last_first").flag().unwrap_or(false);
    server.drops_expired = table.take("drops_expired").flag().unwrap_or(false);
    server.error_rate = table.take("error_rate").ratio().map_or(0.0, |rate| rate.as_f64());
    server.retry_after = table.take("retry_after").duration();
    let crash = table.take("crash").table().and_then(|mut crash| {
        let queue = crash.take("queue").required().integer(1..=u32::MAX);
        queue.zip(crash.take("down").required().duration())
    });
    server.crash = crash;
    server
}

fn law_if(value: &Value<'_>) -> Option<Law> {
    if value.is_present() { law(value) } else { None }
}

fn trouble(table: &mut Table<'_>, names: &[String]) -> Option<Trouble> {
    let server = find(names, &table.take("server"));
    let from = table.take("from").required().duration();
    let lasts = table.take("for").required().duration();
    let what = table.take("what").required().word(&[
        ("down", Kind::Down),
        ("black_hole", Kind::BlackHole),
        ("hold", Kind::Hold),
        ("slow", Kind::Slow),
        ("capacity", Kind::Capacity),
        ("errors", Kind::Errors),
    ]);
    let what = match what? {
        Kind::Down => {
            let status = table.take("status").integer(400..=599);
            Some(Fault::Down { status: status.unwrap_or(503) })
        }
        Kind::BlackHole => Some(Fault::BlackHole),
        Kind::Hold => Some(Fault::Hold),
        Kind::Slow => table.take("times").required().number(1.0..=1e6).map(Fault::Slow),
        Kind::Capacity => share(table).map(Fault::Capacity),
        Kind::Errors => share(table).map(Fault::Errors),
    };
    let (from, lasts) = (from?, lasts?);
    if lasts == Duration::ZERO {
        table.problem("for", "must be longer than nothing");
    }
    Some(Trouble { server: server?, from, to: from.saturating_add(lasts), what: what? })
}

#[derive(Clone, Copy)]
enum Kind {
    Down,
    BlackHole,
    Hold,
    Slow,
    Capacity,
    Errors,
}

fn share(table: &mut Table<'_>) -> Option<f64> {
    table.take("share").required().ratio().map(|share| share.as_f64())
}
