//! What becomes of a request.

use super::calls::{Place, State};
use super::dependency::Now;
use super::state::World;
use crate::law::{Draws, Law, Purpose, nanos};
use crate::model::Trouble;
use crate::queue::{Event, Kind};

/// The bits of a status in the tag of an event; the attempt is above them.
const STATUS_BITS: u32 = 10;

/// In place of the number of an attempt, which begin at 1.
const OF_THE_CALL: u32 = 0;

const OK: u16 = 200;
const FAILED: u16 = 500;
const TURNED_AWAY: u16 = 503;

impl World<'_> {
    pub(super) fn plan_troubles(&mut self) {
        for (number, trouble) in self.model.troubles.iter().enumerate() {
            let Ok(number) = u32::try_from(number) else { return };
            for at in [trouble.from, trouble.to] {
                self.queue.push(Event::new(nanos(at), Kind::Trouble, number, 0));
            }
        }
    }

    /// Trouble has begun or ended.
    pub(super) fn on_trouble(&mut self, number: u32) {
        let Some(&Trouble { server, .. }) = self.model.troubles.get(number as usize) else {
            return;
        };
        let now = self.now;
        let current =
            |it: &&Trouble| it.server == server && (nanos(it.from)..nanos(it.to)).contains(&now);
        let current = self.model.troubles.iter().filter(current);
        let Some(dependency) = self.servers.get_mut(server) else { return };
        dependency.now = current.fold(Now::WELL, |now, trouble| now.with(trouble.what));
        if !dependency.now.hold {
            for (call, attempt) in std::mem::take(&mut dependency.held) {
                self.job_ended(call);
                self.arrive(call, attempt);
            }
        }
        self.start_waiting(server);
    }

    /// A request sets out.
    pub(super) fn dispatch(&mut self, call: u32, attempt: u32) {
        let group = self.group(call);
        let network = self.model.groups[group].network;
        if network.delay == Law::NOTHING && network.loss == 0.0 {
            return self.arrive(call, attempt);
        }
        let mut draws = Draws::of_attempt(self.seed, Purpose::Outward, call, attempt);
        if !draws.happens(network.loss) {
            let at = self.now.saturating_add(network.delay.draw(&mut draws));
            self.job_began(call);
            self.plan(at, Kind::Arrival, call, attempt);
        }
    }

    pub(super) fn on_arrival(&mut self, call: u32, attempt: u32) {
        self.job_ended(call);
        self.arrive(call, attempt);
    }

    /// A request has reached its server, or is held up before it.
    fn arrive(&mut self, call: u32, attempt: u32) {
        let group = &self.model.groups[self.group(call)];
        if group.cancels && !self.is_waited_for(call, attempt) {
            return; // Its caller has taken it back on its way.
        }
        let number = group.server;
        let server = &mut self.servers[number];
        if server.now.black_hole {
            return;
        }
        if server.now.hold {
            server.held.push((call, attempt));
            return self.job_began(call);
        }
        if let Some(status) = server.now.down {
            return self.turn_away(call, attempt, status);
        }
        if self.now < server.fallen_until {
            return self.turn_away(call, attempt, TURNED_AWAY);
        }
        if server.has_worker() {
            return self.start(call, attempt);
        }
        if server.rules.queue.is_some_and(|most| server.queued >= most) {
            return self.turn_away(call, attempt, TURNED_AWAY);
        }
        server.queue.push_back((call, attempt));
        server.queued += 1;
        let crash = server.rules.crash.filter(|(queue, _)| server.queued > *queue);
        self.note_levels(number);
        self.job_began(call);
        if let Some(call) = self.calls.get(call) {
            call.place = Place::Queued;
        }
        if let Some((_, down)) = crash {
            self.fall_over(number, nanos(down));
        }
    }

    fn turn_away(&mut self, call: u32, attempt: u32, status: u16) {
        self.tally.bin.errors += 1;
        self.reply(call, attempt, status);
    }

    /// A worker takes a request up.
    fn start(&mut self, call: u32, attempt: u32) {
        let number = self.server_of(call);
        let server = &mut self.servers[number];
        server.busy += 1;
        let mut luck = Draws::of_attempt(self.seed, Purpose::Luck, call, attempt);
        let hopeless = server.rules.hopeless > 0.0
            && Draws::of_attempt(self.seed, Purpose::Luck, call, OF_THE_CALL)
                .happens(server.rules.hopeless);
        let fails =
            hopeless || luck.happens(server.rules.error_rate) || luck.happens(server.now.errors);
        let law = server.rules.failing.filter(|_| fails).unwrap_or(server.rules.service);
        let mut draws = Draws::of_attempt(self.seed, Purpose::Service, call, attempt);
        let others = u64::from(server.busy - 1);
        let work = law.draw(&mut draws).saturating_add(others * nanos(server.rules.slower_by));
        let work =
            if server.now.slow == 1.0 { work } else { (work as f64 * server.now.slow) as u64 };
        self.note_levels(number);
        self.job_began(call);
        if let Some(call) = self.calls.get(call)
            && call.attempt == attempt
        {
            call.place = Place::Begun;
        }
        let status = if fails { FAILED } else { OK };
        let tag = attempt << STATUS_BITS | u32::from(status);
        self.plan(self.now.saturating_add(work), Kind::Served, call, tag);
    }

    pub(super) fn on_served(&mut self, call: u32, tag: u32) {
        let (attempt, status) = parts(tag);
        let group = self.group(call);
        match self.model.groups[group].onward {
            Some(group) if status == OK => self.begin(group, 0, Some((call, attempt))),
            _ => self.finish(call, attempt, status),
        }
    }

    /// A request is done with: its worker takes up the next.
    pub(super) fn finish(&mut self, call: u32, attempt: u32, status: u16) {
        let number = self.server_of(call);
        self.servers[number].busy -= 1;
        if status != OK {
            self.tally.bin.errors += 1;
        }
        if !self.is_waited_for(call, attempt) {
            self.tally.bin.wasted += 1;
        }
        self.job_ended(call);
        self.start_waiting(number);
        self.reply(call, attempt, status);
    }

    fn start_waiting(&mut self, number: usize) {
        loop {
            let server = &mut self.servers[number];
            if !server.has_worker() {
                return;
            }
            let last_first = server.rules.last_first;
            let next = if last_first { server.queue.pop_back() } else { server.queue.pop_front() };
            let Some((call, attempt)) = next else { return };
            let drops = server.rules.drops_expired;
            self.job_ended(call);
            let group = self.group(call);
            let waited_for = self.is_waited_for(call, attempt);
            if self.model.groups[group].cancels && !waited_for {
                continue; // It left the queue when its caller did.
            }
            self.servers[number].queued -= 1;
            if waited_for || !drops {
                self.start(call, attempt);
            }
        }
    }

    /// Everything that waits is lost; what is in work goes on for nobody.
    fn fall_over(&mut self, number: usize, down: u64) {
        let server = &mut self.servers[number];
        server.fallen_until = self.now.saturating_add(down);
        let lost = std::mem::take(&mut server.queue);
        server.queued = 0;
        for (call, attempt) in lost {
            self.job_ended(call);
            self.turn_away(call, attempt, TURNED_AWAY);
        }
    }

    /// An answer sets out.
    fn reply(&mut self, call: u32, attempt: u32, status: u16) {
        let group = self.group(call);
        let network = self.model.groups[group].network;
        if network.delay == Law::NOTHING && network.loss == 0.0 {
            return self.answered(call, attempt, status);
        }
        let mut draws = Draws::of_attempt(self.seed, Purpose::Homeward, call, attempt);
        if !draws.happens(network.loss) {
            let at = self.now.saturating_add(network.delay.draw(&mut draws));
            let tag = attempt << STATUS_BITS | u32::from(status);
            self.plan(at, Kind::Answer, call, tag);
        }
    }

    pub(super) fn on_answer(&mut self, call: u32, tag: u32) {
        let (attempt, status) = parts(tag);
        self.answered(call, attempt, status);
    }

    /// A caller no longer waits for the answer to its latest request.
    pub(super) fn give_up(&mut self, number: u32) {
        let group = self.group(number);
        if !self.model.groups[group].cancels {
            return;
        }
        let server = self.server_of(number);
        if let Some(call) = self.calls.get(number)
            && call.place == Place::Queued
        {
            call.place = Place::Elsewhere;
            self.servers[server].queued -= 1;
        }
    }

    /// The queue or the work of a server has grown.
    pub(super) fn note_levels(&mut self, number: usize) {
        if number == self.model.watched
            && let Some(server) = self.servers.get(number)
        {
            let bin = &mut self.tally.bin;
            bin.queue = bin.queue.max(server.queued);
            bin.busy = bin.busy.max(server.busy);
        }
    }

    pub(super) fn server_of(&mut self, call: u32) -> usize {
        let group = self.group(call);
        self.model.groups[group].server
    }

    fn group(&mut self, call: u32) -> usize {
        self.calls.get(call).map_or(0, |call| call.group.into())
    }

    fn is_waited_for(&mut self, call: u32, attempt: u32) -> bool {
        let call = self.calls.get(call);
        call.is_some_and(|call| call.state == State::Sent && call.attempt == attempt)
    }

    fn job_began(&mut self, call: u32) {
        if let Some(call) = self.calls.get(call) {
            call.jobs += 1;
        }
    }

    fn job_ended(&mut self, call: u32) {
        if let Some(call) = self.calls.get(call) {
            call.jobs = call.jobs.saturating_sub(1);
        }
    }
}

const fn parts(tag: u32) -> (u32, u16) {
    (tag >> STATUS_BITS, (tag & ((1 << STATUS_BITS) - 1)) as u16)
}
